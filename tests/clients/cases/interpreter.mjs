import { parseEvents } from '../clients.mjs';
import { check, equal, refused } from '../tap.mjs';

/** Run code and gather what the callbacks get. */
async function runCode(client, context, code, language, timeoutMs) {
  const seen = { stdout: '', stderr: '', results: [], errors: [] };
  await client.interpreter.runCodeStream(context, code, language, {
    onStdout: ({ text }) => { seen.stdout += text; },
    onStderr: ({ text }) => { seen.stderr += text; },
    onResult: (result) => { seen.results.push(result); },
    onError: (error) => { seen.errors.push(error); },
  }, timeoutMs);
  return seen;
}

const make = (client, language, options = {}) => client.interpreter.createCodeContext({ language, ...options });

export default [
  {
    methods: ['interpreter.createCodeContext', 'interpreter.runCodeStream', 'interpreter.listCodeContexts', 'interpreter.deleteCodeContext'],
    name: 'python keeps its state',
    async run(client) {
      const context = await make(client, 'python');
      check(context.createdAt instanceof Date, 'a date');
      await runCode(client, context.id, 'x = 20');
      const seen = await runCode(client, context.id, 'import sys\nprint("out")\nprint("err", file=sys.stderr)\nx + 22');
      equal([seen.stdout, seen.stderr, seen.errors], ['out\n', 'err\n', []], 'streams');
      equal(seen.results[0].text, '42', 'last expression');
      check((await client.interpreter.listCodeContexts()).some(({ id }) => id === context.id), 'listed');
      await client.interpreter.deleteCodeContext(context.id);
      check(!(await client.interpreter.listCodeContexts()).some(({ id }) => id === context.id), 'gone');
    },
  },
  {
    methods: ['interpreter.runCodeStream'],
    name: 'an error has a name, a message and a traceback',
    async run(client) {
      const context = await make(client, 'python');
      const { errors } = await runCode(client, context.id, 'def f():\n    return 1 / 0\nf()');
      equal(errors.length, 1, 'errors');
      check(errors[0].message.includes('division by zero'), errors[0].message);
      check(errors[0].traceback.join('\n').includes('ZeroDivisionError'), 'traceback');
      equal((await runCode(client, context.id, '1 + 1')).results[0].text, '2', 'afterwards');
    },
  },
  {
    methods: ['interpreter.runCodeStream'],
    name: 'javascript and typescript keep theirs',
    async run(client) {
      const js = await make(client, 'javascript');
      await runCode(client, js.id, 'const answer = await Promise.resolve(41)', 'javascript');
      const seen = await runCode(client, js.id, 'console.log("hey"); ({ value: answer + 1 })', 'javascript');
      equal(seen.stdout, 'hey\n', 'stdout');
      equal(seen.results[0].json, { value: 42 }, 'json');
      const ts = await make(client, 'typescript');
      const typed = await runCode(client, ts.id, 'const n: number = 5; interface P { a: string }\nconst p: P = { a: "x" };\nn + p.a.length', 'typescript');
      equal(typed.results[0]?.text, '6', `typescript: ${JSON.stringify(typed.errors)}`);
    },
  },
  {
    methods: ['interpreter.runCodeStream'],
    name: 'a timeout interrupts and keeps the context',
    async run(client) {
      const context = await make(client, 'python');
      await runCode(client, context.id, 'kept = 7');
      const { errors } = await runCode(client, context.id, 'import time\ntime.sleep(60)', 'python', 500);
      equal(errors.length, 1, 'errors');
      equal((await runCode(client, context.id, 'kept')).results[0].text, '7', 'afterwards');
    },
  },
  {
    methods: ['interpreter.streamCode'],
    name: 'output comes while the code runs',
    async run(client) {
      const context = await make(client, 'python');
      const begin = Date.now();
      let first;
      let last;
      for await (const event of parseEvents(await client.interpreter.streamCode(context.id, 'import time\nprint("a", flush=True)\ntime.sleep(1)\nprint("b")', 'python'))) {
        if (event.type === 'stdout') first ??= Date.now() - begin;
        last = event;
      }
      equal(last.type, 'execution_complete', 'last');
      check(first < 900, `first output after ${first} ms`);
    },
  },
  {
    methods: ['interpreter.createCodeContext'],
    name: 'directory and environment are honoured',
    async run(client) {
      const context = await make(client, 'python', { cwd: '/usr' });
      const seen = await runCode(client, context.id, 'import os\nprint(os.getcwd())');
      equal(seen.stdout, '/usr\n', 'directory');
    },
  },
  {
    methods: ['interpreter.deleteCodeContext', 'interpreter.runCodeStream'],
    codes: ['CONTEXT_NOT_FOUND'],
    name: 'a context that never was',
    async run(client, { transport }) {
      await refused(client.interpreter.deleteCodeContext('nobody'), 'CONTEXT_NOT_FOUND');
      if (transport === 'websocket') return; // a stream that is refused has no code there
      await refused(runCode(client, 'nobody', '1'), 'CONTEXT_NOT_FOUND');
    },
  },
];
