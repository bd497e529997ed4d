/* Second part: types, which are read to find their end. */
'use strict';

{

const {Scanner} = globalThis.__burrow_syntax__;

class TypeReader extends Scanner {
  closeAngle() {
    if (!this.text.startsWith('>') || this.kind !== 'mark') this.fail();
    this.set('mark', this.start + 1);
    this.next();
  }

  typeArguments() {
    this.expect('<');
    do this.type(); while (this.take(','));
    this.closeAngle();
  }

  typeParameters() {
    this.expect('<');
    while (!this.text.startsWith('>')) {
      while (['const', 'in', 'out'].includes(this.text) && this.peek().kind === 'name') this.next();
      this.takeName();
      if (this.take('extends')) this.type();
      if (this.take('=')) this.type();
      if (!this.take(',')) break;
    }
    this.closeAngle();
  }

  type() {
    if ((this.is('asserts') || this.kind === 'name') && this.predicate()) return;
    if (this.is('<') || this.is('(') || this.is('new') || this.is('abstract')) {
      if (this.attempt(() => this.functionType())) return;
    }
    this.unionType();
    if (!this.newline && this.is('extends')) {
      this.next();
      this.noConditional = true;
      this.unionType();
      this.noConditional = false;
      if (!this.take('?')) this.fail();
      this.type();
      this.expect(':');
      this.type();
    }
  }

  predicate() {
    return this.attempt(() => {
      if (this.is('asserts') && this.peek().kind === 'name' && !this.peek().newline) {
        this.next();
        this.takeName();
        if (this.take('is')) this.type();
        return true;
      }
      this.takeName();
      if (!this.is('is') || this.newline) return false;
      this.next();
      this.type();
      return true;
    });
  }

  functionType() {
    this.take('abstract');
    this.take('new');
    if (this.is('<')) this.typeParameters();
    this.parameters();
    this.expect('=>');
    this.type();
    return true;
  }

  unionType() {
    this.take('|') || this.take('&');
    do this.operatorType(); while (this.take('|') || this.take('&'));
  }

  operatorType() {
    while (['keyof', 'unique', 'readonly', 'infer'].includes(this.text) && this.kind === 'name' &&
           this.startsType(this.peek())) {
      const isInfer = this.is('infer');
      this.next();
      if (isInfer) {
        this.takeName();
        this.attempt(() => {
          this.expect('extends');
          this.unionType();
          return !this.is('?');
        });
        return;
      }
    }
    this.postfixType();
  }

  startsType({kind, text}) {
    return kind !== 'end' && (kind !== 'mark' || ['(', '[', '{', '<', '-'].includes(text)) &&
        text !== 'extends' && text !== 'is';
  }

  postfixType() {
    if (this.is('<') || this.is('new') || this.is('abstract')) this.functionType();
    else this.primaryType();
    while (!this.newline && this.is('[')) {
      this.next();
      if (!this.is(']')) this.type();
      this.expect(']');
    }
  }

  primaryType() {
    if (this.kind === 'template') return this.template(() => this.type());
    if (this.kind === 'string' || this.kind === 'number') return this.next();
    if (this.take('-')) {
      if (this.kind !== 'number') this.fail();
      return this.next();
    }
    if (this.is('(')) {
      if (this.attempt(() => this.functionType())) return undefined;
      this.next();
      this.type();
      return this.expect(')');
    }
    if (this.is('[')) return this.tupleType();
    if (this.is('{')) return this.objectType();
    if (this.is('typeof') || this.is('import')) return this.queryType();
    this.takeName();
    while (this.take('.')) this.takeName();
    if (!this.newline && this.is('<')) this.typeArguments();
    return undefined;
  }

  queryType() {
    this.take('typeof');
    if (this.take('import')) {
      this.expect('(');
      this.type();
      if (this.take(',')) this.type();
      this.expect(')');
    } else {
      this.takeName();
    }
    while (this.take('.')) {
      this.take('#');
      this.takeName();
    }
    if (!this.newline && this.is('<')) this.typeArguments();
  }

  tupleType() {
    this.expect('[');
    while (!this.is(']')) {
      this.take('...');
      this.attempt(() => {
        this.takeName();
        this.take('?');
        this.expect(':');
        return true;
      });
      this.type();
      this.take('?');
      if (!this.take(',')) break;
    }
    this.expect(']');
  }

  /* {a: T; b?(): U, [key: string]: V; readonly [K in T as U]?: W} */
  objectType() {
    this.expect('{');
    while (!this.is('}')) {
      if (this.take('+') || this.take('-')) this.take('readonly');
      while (['readonly', 'get', 'set', 'new'].includes(this.text) &&
             !['(', ':', '?', '<', ';', ',', '}'].includes(this.peek().text)) this.next();
      if (this.is('new') && ['(', '<'].includes(this.peek().text)) this.next();
      if (this.is('[')) this.bracketMember();
      else if (!this.is('(') && !this.is('<')) this.propertyName();
      if (this.take('-') || this.take('+')) this.expect('?');
      else this.take('?');
      if (this.is('<')) this.typeParameters();
      if (this.is('(')) this.parameters();
      if (this.take(':')) this.type();
      if (!this.take(';') && !this.take(',') && !this.is('}') && !this.newline) this.fail();
    }
    this.expect('}');
  }

  bracketMember() {
    this.expect('[');
    const isMapped = this.attempt(() => {
      this.takeName();
      if (this.take(':')) {
        this.type();
        return true;
      }
      this.expect('in');
      this.type();
      if (this.take('as')) this.type();
      return true;
    });
    if (!isMapped) this.expression();
    this.expect(']');
  }

  /* `: Type`, and in front of it `?` or `!`. */
  annotation() {
    if (!this.types) return;
    const from = this.start;
    let found = false;
    if (this.is('?') || (this.is('!') && !this.newline)) {
      this.next();
      found = true;
    }
    if (this.take(':')) {
      this.type();
      found = true;
    }
    if (found) this.blank(from, this.end);
  }
}

globalThis.__burrow_syntax__.TypeReader = TypeReader;

}
