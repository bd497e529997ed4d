/* Reading JavaScript and TypeScript, first part of four: tokens, and what shall be changed.
 *
 * The parts make code that V8's console takes: TypeScript without its types, and import and export,
 * which only modules have, as what does the same. One parser reads both languages and notes what to
 * change; everything else keeps its place, so that lines and columns of errors are right. It is no
 * checker: what it does not understand in JavaScript is left to V8 to refuse, in TypeScript it is a
 * SyntaxError. Not taken: JSX, namespaces with values in them, decorators.
 *
 * The files are joined to one program; each is a block, so that code which later shares the global
 * scope finds none of these names. */
'use strict';

{

const NAME = /[\p{ID_Start}$_\\][\p{ID_Continue}$\u200c\u200d\\]*/uy;
const NUMBER = /0[xX][\da-fA-F_]+n?|0[oO][0-7_]+n?|0[bB][01_]+n?|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?[\d_]+)?n?/y;
const PUNCTUATION = /\.\.\.|=>|\?\.(?!\d)|\*\*=|<<=|>>>=|>>=|&&=|\|\|=|\?\?=|===|!==|\*\*|<<|>>>|>>|<=|>=|==|!=|&&|\|\||\?\?|\+\+|--|\+=|-=|\*=|\/=|%=|&=|\|=|\^=|[{}()[\];,<>+\-*/%&|^!~?:=.@#]/y;
const SPACE = /(?:\s|\/\/[^\n\r\u2028\u2029]*|\/\*[^]*?\*\/|^#![^\n]*)*/y;

const RESERVED = new Set(['break', 'case', 'catch', 'class', 'const', 'continue', 'debugger',
  'default', 'delete', 'do', 'else', 'export', 'extends', 'false', 'finally', 'for', 'function',
  'if', 'import', 'in', 'instanceof', 'new', 'null', 'return', 'super', 'switch', 'this', 'throw',
  'true', 'try', 'typeof', 'var', 'void', 'while', 'with', 'enum']);

class Scanner {
  constructor(source, types) {
    this.source = source;
    this.types = types; // TypeScript, not JavaScript
    this.edits = [];
    this.failedArrows = new Set();
    this.end = 0; // of the last token taken
    this.scan(0);
  }

  // --- tokens

  fail(what = `unexpected ${this.kind === 'end' ? 'end of code' : `'${this.text}'`}`) {
    const before = this.source.slice(0, this.start).split('\n');
    const error = new SyntaxError(what);
    error.place = `${before.length}:${before[before.length - 1].length + 1}`;
    throw error;
  }

  scan(from) {
    const {source} = this;
    SPACE.lastIndex = from;
    const skipped = SPACE.exec(source);
    this.start = SPACE.lastIndex;
    this.newline = /[\n\r\u2028\u2029]/.test(skipped[0]);
    const first = source[this.start];
    if (first === undefined) return this.set('end', this.start);
    if (first === '"' || first === "'") return this.set('string', this.stringEnd(first));
    if (first === '`') return this.set('template', this.start + 1);
    for (const [kind, pattern] of [['name', NAME], ['number', NUMBER], ['mark', PUNCTUATION]]) {
      pattern.lastIndex = this.start;
      if (pattern.test(source) && pattern.lastIndex > this.start)
        return this.set(kind, pattern.lastIndex);
    }
    this.kind = 'mark';
    this.text = first;
    return this.fail();
  }

  set(kind, stop) {
    this.kind = kind;
    this.stop = stop;
    this.text = this.source.slice(this.start, stop);
  }

  stringEnd(quote) {
    for (let at = this.start + 1; at < this.source.length; at++) {
      if (this.source[at] === '\\') at++;
      else if (this.source[at] === quote) return at + 1;
      else if (this.source[at] === '\n') break;
    }
    return this.fail('a string without its end');
  }

  next() {
    this.end = this.stop;
    this.scan(this.stop);
  }

  save() {
    return [this.start, this.end, this.edits.length];
  }

  restore([start, end, edits]) {
    this.scan(start);
    // A newline in front is not seen from here.
    this.newline = /[\n\r\u2028\u2029]/.test(this.source.slice(end, start));
    this.end = end;
    this.edits.length = edits;
  }

  /* What `parse` returns, or undefined with everything as it was when it fails or returns false. */
  attempt(parse) {
    const saved = this.save();
    try {
      const result = parse();
      if (result !== false) return result ?? true;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    this.restore(saved);
    return undefined;
  }

  is(text) {
    return this.text === text && this.kind !== 'string' && this.kind !== 'template';
  }

  take(text) {
    if (!this.is(text)) return false;
    this.next();
    return true;
  }

  expect(text) {
    if (!this.take(text)) this.fail();
  }

  /* The token behind the current one. */
  peek() {
    const saved = this.save();
    this.next();
    const found = {kind: this.kind, text: this.text, newline: this.newline};
    this.restore(saved);
    return found;
  }

  isName() {
    return this.kind === 'name' && !RESERVED.has(this.text);
  }

  takeName() {
    if (this.kind !== 'name') this.fail();
    this.next();
  }

  endStatement() {
    if (this.take(';') || this.is('}') || this.kind === 'end' || this.newline) return;
    this.fail();
  }

  // --- changes

  edit(from, to, text) {
    this.edits.push([from, to, text]);
  }

  /* Blank what lies between, but for the ends of lines. */
  blank(from, to) {
    if (this.types && to > from) this.edit(from, to, this.source.slice(from, to).replace(/[^\n\r]/g, ' '));
  }

  lines(from, to) {
    return this.source.slice(from, to).replace(/[^\n]/g, '');
  }

  /* Everything that `parse` reads is a type. */
  erase(parse) {
    const from = this.start;
    parse();
    this.blank(from, this.end);
  }

  result() {
    let text = '';
    let at = 0;
    const isInsertion = ([from, to]) => from === to;
    const inOrder = (a, b) => a[0] - b[0] || isInsertion(b) - isInsertion(a) || b[1] - a[1];
    for (const [from, to, by] of this.edits.sort(inOrder)) {
      if (from < at) continue; // inside of what was changed as a whole
      text += this.source.slice(at, from) + by;
      at = to;
    }
    return text + this.source.slice(at);
  }
}

globalThis.__burrow_syntax__ = {Scanner, RESERVED};

}
