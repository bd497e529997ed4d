/* Code that V8's console takes: TypeScript without its types, and import and export, which only
 * modules have, as what does the same. sucrase parses both languages and takes the types out; every
 * line stays the line it was. What it does not understand in JavaScript is left to V8 to refuse, in
 * TypeScript it is a SyntaxError. Not taken: JSX, decorators, namespaces with values in them.
 *
 * build.sh makes ../typescript.js of this file and of the parts of sucrase that it needs. */
import {HelperManager} from 'sucrase/dist/esm/HelperManager';
import NameManager from 'sucrase/dist/esm/NameManager';
import {parse} from 'sucrase/dist/esm/parser';
import {ContextualKeyword} from 'sucrase/dist/esm/parser/tokenizer/keywords';
import {TokenType as tt} from 'sucrase/dist/esm/parser/tokenizer/types';
import TokenProcessor from 'sucrase/dist/esm/TokenProcessor';
import RootTransformer from 'sucrase/dist/esm/transformers/RootTransformer';

const IMPORT_NAME = '__burrow_import__'; // javascript.js defines it

/* --- types ----------------------------------------------------------------------------------- */

/* sucrase drops a namespace with all that is in it. That is right for types and wrong for values,
 * which would be missing later without a word. */
function refuseNamespaces(code, tokens) {
  tokens.forEach((token, at) => {
    const isNamespace = token.isType && [ContextualKeyword._namespace, ContextualKeyword._module]
      .includes(token.contextualKeyword) && [tt.name, tt.string].includes(tokens[at + 1].type);
    const isDeclared = at > 0 && tokens[at - 1].contextualKeyword === ContextualKeyword._declare;
    if (!isNamespace || isDeclared) return;
    for (let inside = tokens.findIndex((one, i) => i > at && one.type === tt.braceL) + 1, depth = 0;
         depth >= 0 && tokens[inside].type !== tt.eof; inside++) {
      const {type, start} = tokens[inside];
      if (type === tt.braceL) depth++;
      if (type === tt.braceR) depth--;
      if (!depth && [tt._const, tt._let, tt._var, tt._function, tt._class, tt._enum].includes(type) &&
          tokens[inside - 1].contextualKeyword !== ContextualKeyword._declare)
        throw syntaxError(code, start, 'a namespace with values in it is not taken here: ' +
                                       'use an object or a module');
    }
  });
}

function syntaxError(code, at, what) {
  const before = code.slice(0, at).split('\n');
  return Object.assign(new SyntaxError(what),
                       {place: `${before.length}:${before[before.length - 1].length + 1}`});
}

function withoutTypes(code) {
  const {tokens, scopes} = parse(code, false, true, false);
  refuseNamespaces(code, tokens);
  const options = {transforms: ['typescript'], disableESTransforms: true, keepUnusedImports: true};
  const nameManager = new NameManager(code, tokens);
  const helperManager = new HelperManager(nameManager);
  const tokenProcessor = new TokenProcessor(code, tokens, false, true, helperManager);
  const context = {tokenProcessor, scopes, nameManager, importProcessor: null, helperManager};
  return new RootTransformer(context, options.transforms, false, options).transform().code;
}

/* --- modules --------------------------------------------------------------------------------- */

/* Code with some of its tokens replaced. Ends of lines stay where they were. */
class Edits {
  constructor(code, tokens) {
    this.code = code;
    this.tokens = tokens;
    this.text = '';
    this.done = 0;
  }

  word(at) {
    return this.code.slice(this.tokens[at].start, this.tokens[at].end);
  }

  is(at, type) {
    return this.tokens[at].type === type;
  }

  replace(first, behind, text) {
    const from = this.tokens[first].start;
    const to = this.tokens[behind - 1].end;
    this.text += this.code.slice(this.done, from) + text +
                 this.code.slice(from, to).replace(/[^\n]/g, '');
    this.done = to;
  }

  skipBraces(at) {
    while (!this.is(at, tt.braceR)) at++;
    return at + 1;
  }

  /* The end of a statement whose last token is before `at`. */
  endOf(at) {
    return this.is(at, tt.semi) ? at + 1 : at;
  }

  importNames(at, names) {
    while (!this.is(at, tt.braceR)) {
      const name = this.word(at++);
      const isRenamed = this.word(at) === 'as';
      names.push(isRenamed ? `${name}: ${this.word(at + 1)}` : name);
      at += isRenamed ? 2 : 0;
      if (this.is(at, tt.comma)) at++;
    }
    return at + 1;
  }

  importStatement(first) {
    const names = [];
    let at = first + 1;
    let whole = null;
    if (this.is(at, tt.name)) {
      names.push(`default: ${this.word(at++)}`);
      if (this.is(at, tt.comma)) at++;
    }
    if (this.is(at, tt.star)) {
      whole = this.word(at + 2);
      at += 3;
    } else if (this.is(at, tt.braceL)) {
      at = this.importNames(at + 1, names);
    }
    if (this.word(at) === 'from') at++;
    let text = `await ${IMPORT_NAME}(${this.word(at++)})`;
    if (['with', 'assert'].includes(this.word(at)) && this.is(at + 1, tt.braceL))
      at = this.skipBraces(at);
    if (whole !== null) text = `const ${whole} = ${text}`;
    if (names.length)
      text = whole === null ? `const {${names.join(', ')}} = ${text}`
                            : `${text}; const {${names.join(', ')}} = ${whole}`;
    this.replace(first, this.endOf(at), `${text};`);
  }

  exportDefault(first) {
    let at = first + 2;
    if (this.word(at) === 'async' && this.is(at + 1, tt._function)) at++;
    const isDeclaration = this.is(at, tt._function) || this.is(at, tt._class);
    if (isDeclaration && this.is(at + 1, tt.star)) at++;
    const isNamed = isDeclaration && this.is(at + 1, tt.name);
    this.replace(first, first + 2, isNamed ? '' : 'exports.default =');
  }

  exportStatement(first) {
    const at = first + 1;
    if (this.is(at, tt._default)) return this.exportDefault(first);
    if (!this.is(at, tt.braceL) && !this.is(at, tt.star)) return this.replace(first, at, '');
    let end = this.is(at, tt.braceL) ? this.skipBraces(at) : at + 1;
    if (this.word(end) === 'as') end += 2;
    if (this.word(end) === 'from') end += 2;
    return this.replace(first, this.endOf(end), '');
  }

  result() {
    this.tokens.forEach((token, at) => {
      if (token.start < this.done) return;
      if (token.type === tt._export) this.exportStatement(at);
      if (token.type !== tt._import || this.is(at + 1, tt.dot)) return;
      if (this.is(at + 1, tt.parenL)) this.replace(at, at + 1, IMPORT_NAME);
      else this.importStatement(at);
    });
    return this.text + this.code.slice(this.done);
  }
}

/* JavaScript; what is none stays as it is, for V8 to say so. */
function translateImports(code) {
  if (!/\b(import|export)\b/.test(code)) return code;
  try {
    return new Edits(code, parse(code, false, false, false).tokens).result();
  } catch (error) {
    if (error instanceof SyntaxError) return code;
    throw error;
  }
}

/* TypeScript. Throws SyntaxError with the `place` ("line:column"). */
function stripTypes(code) {
  try {
    return translateImports(withoutTypes(code));
  } catch (error) {
    if (error.loc) error.place = `${error.loc.line}:${error.loc.column}`;
    throw error;
  }
}

export {stripTypes, translateImports};
