/* Fourth part: statements and modules, and the two functions all this is for. */
'use strict';

{

const {ExpressionReader, IMPORT_NAME} = globalThis.__burrow_syntax__;

class Parser extends ExpressionReader {
  // --- statements

  program() {
    while (this.kind !== 'end') this.statement(true);
    return this.result();
  }

  block() {
    this.expect('{');
    while (!this.is('}')) this.statement(false);
    this.expect('}');
  }

  statement(isTop) {
    const handler = this.kind === 'name' ? STATEMENTS[this.text] : undefined;
    if (this.take(';')) return;
    if (this.is('{')) return void this.block();
    if (typeof handler === 'function' && handler(this, isTop)) return;
    if (this.types && this.kind === 'name' && this.typeStatement()) return;
    if (this.isName() && this.peek().text === ':') {
      this.next();
      this.next();
      this.statement(false);
      return;
    }
    this.expression();
    this.endStatement();
  }

  /* Statements that are there for types, and enum. */
  typeStatement() {
    const from = this.start;
    const after = this.peek();
    const named = after.kind === 'name' && !after.newline;
    if (this.is('interface') && named) {
      this.next();
      this.takeName();
      if (this.is('<')) this.typeParameters();
      if (this.take('extends')) do this.type(); while (this.take(','));
      this.objectType();
    } else if (this.is('type') && named) {
      this.next();
      this.takeName();
      if (this.is('<')) this.typeParameters();
      this.expect('=');
      this.type();
      this.endStatement();
    } else if (this.is('declare') && named) {
      this.declaration();
    } else if (this.is('abstract') && after.text === 'class') {
      this.blank(this.start, this.stop);
      this.next();
      this.classRest();
      return true;
    } else if (this.is('enum') && named) {
      this.enumeration(from);
      return true;
    } else if ((this.is('namespace') || this.is('module')) && !after.newline &&
               (named || after.kind === 'string')) {
      this.namespace();
    } else if (this.is('global') && after.text === '{') {
      this.next();
      this.skipBraces();
    } else {
      return false;
    }
    this.blank(from, this.end);
    return true;
  }

  /* declare ...: whatever it is, it is not there. */
  declaration() {
    this.next();
    if (this.is('global')) {
      this.next();
      return this.skipBraces();
    }
    if (this.is('namespace') || this.is('module')) {
      this.next();
      while (!this.is('{')) this.next();
      return this.skipBraces();
    }
    if (this.is('function') || (this.is('async') && this.peek().text === 'function')) {
      this.take('async');
      this.next();
      this.take('*');
      this.takeName();
      this.functionRest();
      return this.endStatement();
    }
    return this.statement(false);
  }

  skipBraces() {
    let depth = 0;
    do {
      if (this.is('{')) depth++;
      if (this.is('}')) depth--;
      if (this.kind === 'end') this.fail();
      if (this.kind === 'template') this.template(() => this.expression());
      else this.next();
    } while (depth);
  }

  namespace() {
    this.next();
    while (!this.is('{')) this.next();
    this.next();
    while (!this.is('}')) {
      this.take('export');
      if (!this.is('interface') && !this.is('type') && !this.is('declare'))
        this.fail('a namespace with values in it is not taken here: use an object or a module');
      if (!this.typeStatement()) this.fail();
    }
    this.next();
  }

  enumeration(from) {
    this.next();
    const name = this.text;
    this.takeName();
    this.expect('{');
    const parts = [];
    let previous = '-1';
    while (!this.is('}')) {
      const key = this.kind === 'string' ? this.text : JSON.stringify(this.text);
      const local = this.kind === 'string' ? `$${parts.length}` : this.text;
      this.propertyName();
      let value = `${previous} + 1`;
      if (this.take('=')) {
        const start = this.start;
        const parser = new Parser(this.source.slice(start), true);
        parser.assignment();
        value = parser.result().slice(0, parser.end);
        this.scan(start + parser.end);
        this.end = start + parser.end;
      }
      parts.push(`const ${local} = ${value.trim().replace(/\s+/g, ' ')}; ${name}[${key}] = ${local}; ` +
                 `if (typeof ${local} === "number") ${name}[${local}] = ${key};`);
      previous = local;
      if (!this.take(',')) break;
    }
    this.expect('}');
    this.edit(from, this.end, `var ${name} = ((${name}) => { ${parts.join(' ')} return ${name}; })({});` +
              this.lines(from, this.end));
  }

  variables(noIn) {
    do {
      this.binding();
      this.annotation();
      if (this.take('=')) this.assignment(noIn);
    } while (this.take(','));
  }

  // --- modules

  importStatement() {
    const from = this.start;
    const after = this.peek();
    if (after.text === '(' || after.text === '.') return false;
    this.next();
    if (this.types && this.is('type') && !['from', ',', '='].includes(this.peek().text)) {
      while (this.kind !== 'string') this.next();
      this.next();
      this.endStatement();
      this.blank(from, this.end);
      return true;
    }
    const names = [];
    let whole = null;
    if (this.kind === 'name') {
      const name = this.text;
      this.next();
      if (this.types && this.take('=')) return this.importEquals(from, name);
      names.push(`default: ${name}`);
      this.take(',');
    }
    if (this.take('*')) {
      this.expect('as');
      whole = this.text;
      this.takeName();
    } else if (this.is('{')) {
      this.importNames(names);
    }
    if (names.length || whole !== null) this.expect('from');
    else this.take('from');
    if (this.kind !== 'string') this.fail();
    const module = this.text;
    this.next();
    if (this.take('with') || (this.is('assert') && !this.newline)) {
      this.take('assert');
      this.objectLiteral();
    }
    this.endStatement();
    let text = `await ${IMPORT_NAME}(${module})`;
    if (whole !== null) text = `const ${whole} = ${text}`;
    if (names.length)
      text = whole === null ? `const {${names.join(', ')}} = ${text}`
                            : `${text}; const {${names.join(', ')}} = ${whole}`;
    this.edit(from, this.end, text + ';' + this.lines(from, this.end));
    return true;
  }

  importEquals(from, name) {
    const start = this.start;
    this.expression();
    this.endStatement();
    this.edit(from, this.end, `const ${name} = ${this.source.slice(start, this.end)}` +
              (this.source[this.end - 1] === ';' ? '' : ';'));
    return true;
  }

  importNames(names) {
    this.expect('{');
    while (!this.is('}')) {
      const isType = this.types && this.is('type') && ![',', '}', 'as'].includes(this.peek().text);
      if (isType) this.next();
      const name = this.text;
      let local = name;
      this.next();
      if (this.take('as')) {
        local = this.text;
        this.takeName();
      }
      if (!isType) names.push(name === local ? name : `${name}: ${local}`);
      if (!this.take(',')) break;
    }
    this.expect('}');
  }

  exportStatement() {
    const from = this.start;
    this.next();
    if (this.take('default')) {
      const isDeclaration = ['function', 'class', 'async', 'abstract', 'interface'].includes(this.text);
      if (isDeclaration && this.attempt(() => {
        const start = this.start;
        this.statement(false);
        this.edit(from, start, ' ');
        return true;
      })) return true;
      const start = this.start;
      this.expression();
      this.endStatement();
      this.edit(from, start, 'exports.default = ');
      return true;
    }
    if (this.is('{') || this.is('*') || (this.types && this.is('type') && ['{', '*'].includes(this.peek().text)))
      return this.exportNames(from);
    if (this.types && this.take('=')) {
      const start = this.start;
      this.expression();
      this.endStatement();
      this.edit(from, start, 'module.exports = ');
      return true;
    }
    const start = this.start;
    this.statement(false);
    this.edit(from, start, this.source.slice(from, start).replace(/[^\n\r]/g, ' '));
    return true;
  }

  exportNames(from) {
    this.take('type');
    if (this.take('*')) {
      if (this.take('as')) this.next();
    } else {
      this.expect('{');
      while (!this.is('}')) this.next();
      this.expect('}');
    }
    if (this.take('from')) this.next();
    this.endStatement();
    this.edit(from, this.end, this.lines(from, this.end));
    return true;
  }
}

function parenthesized(p) {
  p.next();
  p.expect('(');
  p.expression();
  p.expect(')');
}

function forStatement(p) {
  p.next();
  p.take('await');
  p.expect('(');
  if (!p.is(';')) {
    if (['var', 'let', 'const'].includes(p.text)) {
      p.next();
      p.variables(true);
    } else {
      p.expression(true);
    }
  }
  if (p.take('of') || p.take('in')) {
    p.expression();
  } else {
    p.expect(';');
    if (!p.is(';')) p.expression();
    p.expect(';');
    if (!p.is(')')) p.expression();
  }
  p.expect(')');
  p.statement(false);
  return true;
}

function tryStatement(p) {
  p.next();
  p.block();
  if (p.take('catch')) {
    if (p.take('(')) {
      p.binding();
      p.annotation();
      p.expect(')');
    }
    p.block();
  }
  if (p.take('finally')) p.block();
  return true;
}

function switchStatement(p) {
  parenthesized(p);
  p.expect('{');
  while (!p.is('}')) {
    if (p.take('default')) {
      p.expect(':');
    } else if (p.take('case')) {
      p.expression();
      p.expect(':');
    } else {
      p.statement(false);
    }
  }
  p.expect('}');
  return true;
}

function functionStatement(p) {
  const from = p.start;
  p.take('async');
  p.expect('function');
  p.take('*');
  p.takeName();
  if (p.functionRest()) return true;
  if (!p.types) p.fail();
  p.endStatement();
  p.blank(from, p.end); // an overload
  return true;
}

function variableStatement(p) {
  if (p.is('const') && p.types && p.peek().text === 'enum') {
    const from = p.start;
    p.next();
    p.enumeration(from);
    return true;
  }
  if (p.is('let') && !/^[\p{ID_Start}$_\\[{]/u.test(p.peek().text)) return false;
  p.next();
  p.variables();
  p.endStatement();
  return true;
}

function optionalExpression(p) {
  p.next();
  if (!p.newline && !p.is(';') && !p.is('}') && p.kind !== 'end') p.expression();
  p.endStatement();
  return true;
}

function jump(p) {
  p.next();
  if (!p.newline && p.kind === 'name') p.next();
  p.endStatement();
  return true;
}

const STATEMENTS = Object.assign(Object.create(null), {
  var: variableStatement,
  let: variableStatement,
  const: variableStatement,
  function: functionStatement,
  async: (p) => p.peek().text === 'function' && !p.peek().newline && functionStatement(p),
  class: (p) => (p.classRest(), true),
  if: (p) => {
    parenthesized(p);
    p.statement(false);
    if (p.take('else')) p.statement(false);
    return true;
  },
  while: (p) => (parenthesized(p), p.statement(false), true),
  with: (p) => (parenthesized(p), p.statement(false), true),
  do: (p) => {
    p.next();
    p.statement(false);
    if (!p.is('while')) p.fail();
    parenthesized(p);
    p.take(';');
    return true;
  },
  for: forStatement,
  try: tryStatement,
  switch: switchStatement,
  return: optionalExpression,
  throw: optionalExpression,
  break: jump,
  continue: jump,
  debugger: jump,
  import: (p, isTop) => isTop && p.importStatement(),
  export: (p, isTop) => isTop && p.exportStatement(),
});

/* JavaScript; what is none stays as it is, for V8 to say so. */
function translateImports(code) {
  if (!/\b(import|export)\b/.test(code)) return code;
  try {
    return new Parser(code, false).program();
  } catch (error) {
    if (error instanceof SyntaxError) return code;
    throw error;
  }
}

/* TypeScript. Throws SyntaxError with the `place` ("line:column"). */
function stripTypes(code) {
  return new Parser(code, true).program();
}

globalThis.__burrow_syntax__ = {stripTypes, translateImports};

}
