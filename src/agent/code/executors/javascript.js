/* Runs code in JavaScript and TypeScript for the agent: one process is one context.
 *
 * Started as `node -` with this text as standard input and a socket as descriptor 3, on which it
 * speaks newline JSON (code_frame.h says what). Whatever is written to descriptors 1 and 2 is the
 * output. Code is evaluated by the inspector of V8 in its mode for consoles, which is what browsers
 * do: let and const can be declared again, await works at the top, the last expression is the
 * value, and everything stays for the next run. */
'use strict';

(() => { // the code shares our global scope, and shall find none of these names in it

const loadSyntax = globalThis.__burrow_syntax__; // typescript.js, before this
delete globalThis.__burrow_syntax__;

const fs = require('fs');
const inspector = require('inspector');
const module_ = require('module');
const net = require('net');
const path = require('path');
const util = require('util');
const vm = require('vm');

const CHANNEL = 3;
// The agent refuses more: see code_frame.h.
const TEXT_MAX = 1 << 20;
const JSON_MAX = 1 << 20;
const DATA_MAX = 6 << 20;
const JSON_DEPTH = 32;
const JSON_VALUES = 50000;
const TRACEBACK_MAX = 64 << 10;

const VALUE_HOOK = Symbol.for('burrow.value');
const IMPORT_HOOK = '__burrow_import__';

// --- the channel ---------------------------------------------------------------------------------

const pause = new Int32Array(new SharedArrayBuffer(4));

/* At once and whole, also while code keeps the loop busy. */
function send(frame) {
  let bytes = Buffer.from(JSON.stringify(frame) + '\n');
  while (bytes.length) {
    try {
      bytes = bytes.subarray(fs.writeSync(CHANNEL, bytes));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(pause, 0, 0, 1); // the agent reads slowly
    }
  }
}

// --- values as JSON ------------------------------------------------------------------------------

/* A string that every reader of JSON takes: no lone surrogates, no NUL. */
function clean(text) {
  return Buffer.from(text, 'utf8').toString('utf8').replaceAll('\0', '\ufffd');
}

function cut(text, limit = TEXT_MAX) {
  if (text.length <= limit) return clean(text);
  return clean(text.slice(0, limit)) + `\n... ${text.length - limit} more characters`;
}

/* The same made of what the agent's reader takes; throws for what is too much of it. */
function plain(value, budget, depth) {
  if (--budget.left < 0) throw new Error('too many values');
  if (typeof value === 'string') return clean(value);
  if (typeof value === 'number' && Math.abs(value) >= 2 ** 63 && Number.isFinite(value))
    throw new Error('an integer that does not fit');
  if (value === null || typeof value !== 'object') return value;
  if (!depth) throw new Error('too deep');
  if (Array.isArray(value)) return value.map((item) => plain(item, budget, depth - 1));
  const copy = Object.create(null);
  for (const key of Object.keys(value)) copy[clean(key)] = plain(value[key], budget, depth - 1);
  return copy;
}

/* What JSON.stringify makes of a value, or undefined. */
function asJson(value) {
  try {
    const text = JSON.stringify(value);
    if (text === undefined || text.length > JSON_MAX) return undefined;
    return plain(JSON.parse(text), {left: JSON_VALUES}, JSON_DEPTH);
  } catch {
    return undefined; // circular, a BigInt inside, too large
  }
}

// --- results -------------------------------------------------------------------------------------

const REPRESENTATIONS = ['html', 'markdown', 'svg', 'png', 'jpeg', 'latex', 'javascript'];

function asText(data) {
  if (data instanceof Uint8Array) return Buffer.from(data).toString('base64');
  return clean(String(data));
}

/* The methods notebooks know: _repr_html_() and the like. */
function addRepresentations(result, value) {
  for (const field of REPRESENTATIONS) {
    const name = `_repr_${field}_`;
    try {
      if (typeof value[name] !== 'function') continue;
      const data = value[name]();
      if (data === undefined || data === null) continue;
      const text = asText(data);
      if (text.length <= DATA_MAX) result[field] = text;
      else console.error(`a result as ${field} is too large to be shown (${text.length} bytes)`);
    } catch (error) {
      console.error(`${name} failed:`, error);
    }
  }
}

function describe(value) {
  const result = {type: 'result', metadata: {}};
  if (value !== null && typeof value === 'object') {
    addRepresentations(result, value);
    const document = asJson(value);
    if (document !== undefined) result.json = document;
  }
  try {
    result.text = cut(util.inspect(value, {depth: 6, colors: false, maxStringLength: TEXT_MAX}));
  } catch (error) {
    console.error('inspect failed:', error);
  }
  return result;
}

// --- errors --------------------------------------------------------------------------------------

/* The inspector called the code, and this file the inspector. */
function ownFramesGone(stack) {
  const lines = stack.split('\n');
  const own = lines.findIndex((line) => /^\s+at .*(node:inspector:|\[stdin\]:)/.test(line));
  return own < 0 ? lines : lines.slice(0, own);
}

function traceback(error) {
  let stack = typeof error.stack === 'string' ? error.stack : String(error);
  if (stack.length > TRACEBACK_MAX)
    stack = stack.slice(0, TRACEBACK_MAX / 2) + '\n...\n' + stack.slice(-TRACEBACK_MAX / 2);
  return ownFramesGone(clean(stack));
}

function describeError(error, place) {
  const frame = {type: 'error', ename: 'Error', evalue: '', traceback: []};
  try {
    if (error !== null && typeof error === 'object' && 'message' in error) {
      frame.ename = cut(String(error.name || 'Error'), 256);
      frame.evalue = cut(String(error.message));
      frame.traceback = traceback(error);
    } else {
      frame.evalue = cut(typeof error === 'string' ? error : util.inspect(error));
      frame.traceback = [`Uncaught ${frame.evalue}`];
    }
  } catch {
    frame.evalue = 'an error whose text cannot be made';
  }
  if (place) frame.traceback.push(`    at ${place}`);
  return frame;
}

class SystemExit extends Error {
  constructor(code) {
    super(String(code ?? process.exitCode ?? 0));
    this.name = 'SystemExit';
  }
}

class Interrupted extends Error {
  constructor() {
    super('Execution was interrupted');
    this.name = 'KeyboardInterrupt';
    this.stack = `${this.name}: ${this.message}`;
  }
}

// --- evaluation ----------------------------------------------------------------------------------

const session = new inspector.Session();
let globalId;
let handed; // what VALUE_HOOK was called with
let interrupt = () => {}; // ends the run that waits

function post(method, parameters) {
  return new Promise((resolve, reject) => {
    session.post(method, parameters,
                 (error, answer) => (error ? reject(new Error(error.message)) : resolve(answer)));
  });
}

/* The value itself behind the inspector's description of it. */
async function fetchValue(remote) {
  const argument = 'objectId' in remote            ? {objectId: remote.objectId}
                   : 'unserializableValue' in remote ? {unserializableValue: remote.unserializableValue}
                                                     : {value: remote.value};
  await post('Runtime.callFunctionOn', {
    objectId: globalId,
    functionDeclaration: 'function (value) { this[Symbol.for("burrow.value")](value); }',
    arguments: [argument],
    silent: true,
  });
  const value = handed;
  handed = undefined;
  return value;
}

const BEGIN = Symbol.for('burrow.begin');
const watchedScript = new vm.Script('globalThis[Symbol.for("burrow.begin")]()',
                                    {filename: 'node:internal/run'});

function watched(begin) {
  Object.defineProperty(globalThis, BEGIN, {value: begin, configurable: true});
  watchedScript.runInThisContext({breakOnSigint: true});
}

/* Start the code where an interrupt can break a loop that never yields: the inspector's evaluation
 * runs inside a script of our own, which vm watches. */
function start(expression) {
  let answer;
  const begin = () => {
    answer = post('Runtime.evaluate',
                  {expression, replMode: true, silent: true, objectGroup: 'run'});
    answer.catch(() => {});
  };
  try {
    watched(begin);
  } catch (error) {
    if (error && error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') throw new Interrupted();
    throw error;
  }
  return answer;
}

function placeOf(details, name) {
  const isSyntax = details.exception && details.exception.className === 'SyntaxError';
  return isSyntax && details.scriptId ? `${name}:${details.lineNumber + 1}:${details.columnNumber + 1}`
                                      : null;
}

async function evaluate(source, name) {
  const answer = await start(`${source}\n//# sourceURL=${name}`);
  if (answer.exceptionDetails) {
    const thrown = await fetchValue(answer.result);
    return {error: thrown, place: placeOf(answer.exceptionDetails, name)};
  }
  let value = await fetchValue(answer.result);
  if (value !== null && typeof value === 'object' && typeof value.then === 'function')
    value = await value;
  return {value};
}

/* Ends when the code does or an interrupt comes, whichever is first. */
async function evaluateUnlessInterrupted(source, name) {
  const interrupted = new Promise((resolve) => {
    interrupt = () => resolve({error: new Interrupted()});
  });
  try {
    return await Promise.race([evaluate(source, name), interrupted]);
  } catch (error) {
    return {error};
  } finally {
    interrupt = () => {};
    session.post('Runtime.releaseObjectGroup', {objectGroup: 'run'});
  }
}

// --- a run ---------------------------------------------------------------------------------------

let count = 0;

let syntax;

/* What V8's console takes. */
function prepareSource(code, language) {
  if (language !== 'typescript' && !/\b(import|export)\b/.test(code)) return code;
  syntax ??= loadSyntax();
  return language === 'typescript' ? syntax.stripTypes(code) : syntax.translateImports(code);
}

async function run(request) {
  const name = `<code-${++count}>`;
  let outcome;
  try {
    outcome = await evaluateUnlessInterrupted(prepareSource(request.code, request.language), name);
  } catch (error) {
    outcome = {error, place: error.place && `${name}:${error.place}`};
  }
  if ('error' in outcome) {
    const frame = describeError(outcome.error, outcome.place);
    process.stderr.write(frame.traceback.join('\n') + '\n');
    send(frame);
  } else if (outcome.value !== undefined) {
    globalThis._ = outcome.value;
    send(describe(outcome.value));
  }
  send({type: 'end'});
}

// --- its life ------------------------------------------------------------------------------------

function hide(name, value) {
  Object.defineProperty(globalThis, name, {value, writable: true, configurable: true});
}

/* Standard input was this text; code finds it empty. */
function emptyInput() {
  try {
    fs.closeSync(0);
    fs.openSync('/dev/null', 'r'); // the lowest free number: 0
  } catch {
    // where there is no /dev it stays as it is: at its end
  }
  const {Readable} = require('stream');
  Object.defineProperty(process, 'stdin', {value: Readable.from([]), configurable: true});
}

function furnish() {
  const here = path.join(process.cwd(), 'code.js');
  hide('require', module_.createRequire(here));
  hide('module', {exports: {}});
  hide('exports', globalThis.module.exports);
  hide('__filename', here);
  hide('__dirname', process.cwd());
  hide('display', (...values) => values.forEach((value) => send(describe(value))));
  hide(VALUE_HOOK, (value) => { handed = value; });
  hide(IMPORT_HOOK, (...specifier) => import(specifier[0]));
  process.argv = [process.argv[0], here];
  process.exit = (code) => { throw new SystemExit(code); };
}

function complain(error) {
  if (error instanceof SystemExit) return;
  process.stderr.write(`Uncaught ${traceback(error ?? {}).join('\n')}\n`);
}

function listen(socket) {
  let waiting = Promise.resolve();
  let pending = [];
  socket.on('data', (bytes) => {
    let from = 0;
    for (let at; (at = bytes.indexOf(10, from)) >= 0; from = at + 1) {
      const line = Buffer.concat([...pending, bytes.subarray(from, at)]);
      pending = [];
      waiting = waiting.then(() => run(JSON.parse(line.toString('utf8'))));
    }
    pending.push(bytes.subarray(from));
  });
  socket.on('end', () => process.reallyExit(0));
  socket.on('error', () => process.reallyExit(0));
}

async function main() {
  emptyInput();
  furnish();
  process.on('uncaughtException', complain);
  process.on('unhandledRejection', complain);
  process.on('SIGINT', () => interrupt());
  session.connect();
  globalId = (await post('Runtime.evaluate', {expression: 'globalThis'})).result.objectId;
  listen(new net.Socket({fd: CHANNEL, readable: true, writable: false}));
  send({type: 'ready', pid: process.pid});
}

main();

})();
