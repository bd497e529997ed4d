/* Third part: functions, expressions and classes. */
'use strict';

{

const {TypeReader, RESERVED} = globalThis.__burrow_syntax__;

const BINARY = new Set(['**', '*', '/', '%', '+', '-', '<<', '>>', '>>>', '<', '>', '<=', '>=',
  '==', '!=', '===', '!==', '&', '^', '|', '&&', '||', '??', '=', '+=', '-=', '*=', '/=', '%=',
  '**=', '<<=', '>>=', '>>>=', '&=', '|=', '^=', '&&=', '||=', '??=', 'in', 'instanceof']);
const UNARY = new Set(['+', '-', '!', '~', '++', '--', 'typeof', 'void', 'delete', 'await']);
const MEMBER_WORDS = new Set(['public', 'private', 'protected', 'readonly', 'abstract', 'override',
  'declare', 'static', 'accessor', 'async', 'get', 'set']);
const TYPE_WORDS = new Set(['public', 'private', 'protected', 'readonly', 'abstract', 'override',
  'declare']);
// What import(...) becomes; javascript.js defines it.
const IMPORT_NAME = '__burrow_import__';

class ExpressionReader extends TypeReader {
  // --- functions

  binding() {
    if (this.take('{')) {
      while (!this.is('}')) {
        if (this.take('...')) {
          this.binding();
        } else {
          const isName = this.kind === 'name';
          this.propertyName();
          if (this.take(':')) this.binding();
          else if (!isName) this.fail();
        }
        if (this.take('=')) this.assignment();
        if (!this.take(',')) break;
      }
      this.expect('}');
    } else if (this.take('[')) {
      while (!this.is(']')) {
        if (this.take(',')) continue;
        this.take('...');
        this.binding();
        if (this.take('=')) this.assignment();
        if (!this.is(']')) this.expect(',');
      }
      this.expect(']');
    } else {
      if (!this.isName()) this.fail();
      this.next();
    }
  }

  /* Returns the names of those that are properties too. */
  parameters() {
    const properties = [];
    this.expect('(');
    while (!this.is(')')) {
      if (this.types && this.is('this')) {
        const from = this.start;
        this.next();
        if (this.take(':')) this.type();
        this.take(',');
        this.blank(from, this.end);
        continue;
      }
      let isProperty = false;
      while (this.types && TYPE_WORDS.has(this.text) && /^[\w$[{]/.test(this.peek().text)) {
        this.blank(this.start, this.stop);
        this.next();
        isProperty = true;
      }
      this.take('...');
      if (isProperty) properties.push(this.text);
      this.binding();
      this.annotation();
      if (this.take('=')) this.assignment();
      if (!this.take(',')) break;
    }
    this.expect(')');
    return properties;
  }

  /* From the parameters on. Without a body it is a signature only: returns false. */
  functionRest() {
    if (this.types && this.is('<')) this.erase(() => this.typeParameters());
    const properties = this.parameters();
    if (this.types && this.is(':')) this.annotation();
    if (!this.is('{')) return false;
    this.functionBody(properties);
    return true;
  }

  functionBody(properties = []) {
    const outer = this.superEnd;
    const opening = this.stop;
    this.superEnd = undefined;
    this.block();
    if (properties.length) {
      const at = this.superEnd ?? opening;
      this.edit(at, at, `;${properties.map((name) => `this.${name} = ${name};`).join(' ')}`);
    }
    this.superEnd = outer;
  }

  arrow(needsColonAfter) {
    if (this.failedArrows.has(this.start)) return false;
    const {start} = this;
    const parse = (typed) => this.attempt(() => {
      const isAsync = this.is('async') && !this.peek().newline;
      if (isAsync) this.next();
      if (this.types && this.is('<')) this.erase(() => this.typeParameters());
      if (this.is('(')) this.parameters();
      else if (this.isName()) this.next();
      else return false;
      if (typed && this.types && this.is(':')) this.annotation();
      if (!this.is('=>') || this.newline) return false;
      this.next();
      if (this.is('{')) this.functionBody();
      else this.assignment(undefined, needsColonAfter && typed);
      return !(needsColonAfter && typed) || this.is(':');
    });
    if (parse(true) || (needsColonAfter && parse(false))) return true;
    this.failedArrows.add(start);
    return false;
  }

  // --- expressions

  expression(noIn) {
    do this.assignment(noIn); while (this.take(','));
  }

  assignment(noIn, isInCondition) {
    if (this.is('yield')) {
      this.next();
      this.take('*');
      if (this.newline || this.kind === 'end' || [')', ']', '}', ',', ';', ':'].includes(this.text))
        return;
      this.assignment(noIn);
      return;
    }
    for (;;) {
      this.unary(isInCondition);
      this.typeOperators();
      if (this.is('?')) {
        this.next();
        this.assignment(undefined, true);
        this.expect(':');
        this.assignment(noIn, isInCondition);
        return;
      }
      if (this.kind === 'string' || this.kind === 'template' || !BINARY.has(this.text) ||
          (noIn && this.is('in'))) return;
      this.next();
    }
  }

  /* as Type, satisfies Type */
  typeOperators() {
    while (this.types && !this.newline && (this.is('as') || this.is('satisfies'))) {
      const from = this.start;
      this.next();
      if (!this.take('const')) this.type();
      this.blank(from, this.end);
    }
  }

  unary(isInCondition) {
    while (UNARY.has(this.text) && this.kind !== 'string' && this.kind !== 'template') this.next();
    if (this.types && this.is('<')) {
      if (this.arrow(isInCondition)) return;
      this.erase(() => this.typeArguments()); // an old cast
      this.unary(isInCondition);
      return;
    }
    this.postfix(isInCondition);
  }

  postfix(isInCondition) {
    if ((this.is('(') || this.kind === 'name') && this.maybeArrow() && this.arrow(isInCondition))
      return;
    this.primary();
    this.suffixes();
    if (!this.newline && (this.is('++') || this.is('--'))) this.next();
  }

  /* A cheap look that spares most attempts. */
  maybeArrow() {
    if (this.is('(')) return true;
    if (this.is('async')) return true;
    return this.isName() && this.peek().text === '=>';
  }

  suffixes() {
    for (;;) {
      if (this.types && this.is('!') && !this.newline && this.peek().text !== '=') {
        this.blank(this.start, this.stop);
        this.next();
      } else if (this.kind === 'template') {
        this.template(() => this.expression());
      } else if (this.take('?.')) {
        if (this.is('(') || this.is('[') || this.kind === 'template') continue;
        if (this.types && this.is('<')) this.erase(() => this.typeArguments());
        else this.memberName();
      } else if (this.take('.')) {
        this.memberName();
      } else if (this.take('[')) {
        this.expression();
        this.expect(']');
      } else if (this.is('(')) {
        this.callArguments();
      } else if (!(this.types && (this.is('<') || this.is('<<')) && this.genericCall())) {
        return;
      }
    }
  }

  memberName() {
    this.take('#');
    this.takeName();
  }

  callArguments() {
    this.expect('(');
    while (!this.is(')')) {
      this.take('...');
      this.assignment();
      if (!this.take(',')) break;
    }
    this.expect(')');
  }

  genericCall() {
    return this.attempt(() => {
      const from = this.start;
      if (this.is('<<')) this.set('mark', this.start + 1);
      this.typeArguments();
      const follows = this.kind === 'template' || this.kind === 'end' || this.is('(') ||
          (this.kind === 'mark' && !['[', '{', '+', '-', '!', '~', '<', '/', '#', '@'].includes(this.text));
      if (!follows) return false;
      this.blank(from, this.end);
      return true;
    });
  }

  template(part) {
    let at = this.start + 1;
    for (;;) {
      const found = this.source[at];
      if (found === undefined) this.fail('a template without its end');
      if (found === '\\') {
        at += 2;
      } else if (found === '`') {
        this.set('template', at + 1);
        return this.next();
      } else if (found === '$' && this.source[at + 1] === '{') {
        this.scan(at + 2);
        part();
        if (!this.is('}')) this.fail();
        at = this.stop;
      } else {
        at++;
      }
    }
  }

  regularExpression() {
    let inClass = false;
    for (let at = this.start + 1; at < this.source.length && this.source[at] !== '\n'; at++) {
      const found = this.source[at];
      if (found === '\\') at++;
      else if (found === '[') inClass = true;
      else if (found === ']') inClass = false;
      else if (found === '/' && !inClass) {
        at++;
        while (/[a-z]/i.test(this.source[at] ?? '')) at++;
        this.set('regex', at);
        return this.next();
      }
    }
    return this.fail('a regular expression without its end');
  }

  primary() {
    if (this.kind === 'string' || this.kind === 'number') return this.next();
    if (this.kind === 'template') return this.template(() => this.expression());
    if (this.is('/') || this.is('/=')) return this.regularExpression();
    if (this.take('(')) {
      this.expression();
      return this.expect(')');
    }
    if (this.is('[')) return this.arrayLiteral();
    if (this.is('{')) return this.objectLiteral();
    if (this.take('#')) return this.takeName();
    if (this.is('function')) return this.functionExpression();
    if (this.is('async') && this.peek().text === 'function' && !this.peek().newline) {
      this.next();
      return this.functionExpression();
    }
    if (this.is('class')) return this.classRest();
    if (this.is('new')) return this.newExpression();
    if (this.is('import')) return this.importExpression();
    if (this.is('super')) return this.superCall();
    if (this.kind !== 'name' || (RESERVED.has(this.text) &&
        !['this', 'null', 'true', 'false'].includes(this.text))) this.fail();
    return this.next();
  }

  superCall() {
    this.next();
    if (!this.is('(')) return;
    this.callArguments();
    this.superEnd ??= this.end;
  }

  functionExpression() {
    this.expect('function');
    this.take('*');
    if (this.kind === 'name') this.next();
    if (!this.functionRest()) this.fail();
  }

  newExpression() {
    this.expect('new');
    if (this.take('.')) return this.takeName();
    if (this.is('new')) this.newExpression();
    else this.primary();
    for (;;) {
      if (this.take('.')) this.memberName();
      else if (this.take('[')) {
        this.expression();
        this.expect(']');
      } else break;
    }
    if (this.types && this.is('<')) this.genericCall();
    if (this.is('(')) this.callArguments();
    return undefined;
  }

  importExpression() {
    const {start, stop} = this;
    this.next();
    if (this.take('.')) return this.takeName();
    if (!this.is('(')) this.fail();
    this.edit(start, stop, IMPORT_NAME);
    return this.callArguments();
  }

  arrayLiteral() {
    this.expect('[');
    while (!this.is(']')) {
      if (this.take(',')) continue;
      this.take('...');
      this.assignment();
      if (!this.is(']')) this.expect(',');
    }
    this.expect(']');
  }

  propertyName() {
    if (this.take('[')) {
      this.assignment();
      return this.expect(']');
    }
    this.take('#');
    if (this.kind !== 'name' && this.kind !== 'string' && this.kind !== 'number') this.fail();
    return this.next();
  }

  objectLiteral() {
    this.expect('{');
    while (!this.is('}')) {
      if (this.take('...')) {
        this.assignment();
      } else {
        while (['get', 'set', 'async'].includes(this.text) && this.kind === 'name' &&
               ![',', ':', '(', '}', '=', '<'].includes(this.peek().text)) this.next();
        this.take('*');
        this.propertyName();
        if (this.is('(') || this.is('<')) {
          if (!this.functionRest()) this.fail();
        } else if (this.take(':') || this.take('=')) {
          this.assignment();
        }
      }
      if (!this.take(',')) break;
    }
    this.expect('}');
  }

  // --- classes

  classRest() {
    this.expect('class');
    if (this.isName() && !this.is('implements')) this.next();
    if (this.types && this.is('<')) this.erase(() => this.typeParameters());
    if (this.take('extends')) {
      this.postfix();
      if (this.types && this.is('<')) this.erase(() => this.typeArguments());
    }
    if (this.types && this.is('implements')) {
      this.erase(() => {
        this.next();
        do this.type(); while (this.take(','));
      });
    }
    this.expect('{');
    while (!this.is('}')) this.member();
    this.expect('}');
  }

  member() {
    if (this.take(';')) return;
    const from = this.start;
    let isDeclared = false;
    while (MEMBER_WORDS.has(this.text) && this.kind === 'name') {
      const after = this.peek();
      if (['(', '=', ';', ',', '}', ':', '?', '!', '<'].includes(after.text) && after.kind === 'mark')
        break;
      if (after.newline && !TYPE_WORDS.has(this.text) && !this.is('static')) break;
      if (this.is('abstract') || this.is('declare')) isDeclared = true;
      if (this.types && TYPE_WORDS.has(this.text)) this.blank(this.start, this.stop);
      const isStatic = this.is('static');
      this.next();
      if (isStatic && this.is('{')) return this.functionBody();
    }
    if (this.types && this.is('[') && this.indexSignature(from)) return undefined;
    this.take('*');
    this.propertyName();
    if (this.types && (this.is('?') || this.is('!'))) {
      this.blank(this.start, this.stop);
      this.next();
    }
    if (this.is('(') || this.is('<')) return this.method(from);
    this.annotation();
    if (this.take('=')) this.assignment();
    this.endStatement();
    if (isDeclared) this.blank(from, this.end);
    return undefined;
  }

  indexSignature(from) {
    return this.attempt(() => {
      this.next();
      this.takeName();
      this.expect(':');
      this.type();
      this.expect(']');
      this.annotation();
      this.endStatement();
      this.blank(from, this.end);
      return true;
    });
  }

  method(from) {
    if (this.functionRest()) return;
    if (!this.types) this.fail();
    this.endStatement();
    this.blank(from, this.end); // an overload, or abstract
  }
}

Object.assign(globalThis.__burrow_syntax__, {ExpressionReader, IMPORT_NAME});

}
