import { parseEvents } from '../clients.mjs';
import { check, equal, refused } from '../tap.mjs';

const NO_SESSION = '__DISABLE_SESSION__';

async function eventsOf(stream) {
  const events = [];
  for await (const event of parseEvents(stream)) events.push(event);
  return events;
}

const textOf = (events, type) =>
  events.filter((event) => event.type === type).map((event) => event.data).join('');

const execute = ['commands.execute'];
const stream = ['commands.executeStream'];

export default [
  {
    methods: execute,
    name: 'stdout, stderr and status apart',
    async run(client, { session }) {
      const result = await client.commands.execute('echo out; echo err >&2; (exit 3)', session);
      equal([result.success, result.exitCode, result.stdout, result.stderr],
        [false, 3, 'out', 'err'], 'result');
      equal(result.command, 'echo out; echo err >&2; (exit 3)', 'command');
      check(!Number.isNaN(Date.parse(result.timestamp)), 'timestamp');
    },
  },
  {
    methods: execute,
    name: 'a session keeps directory, variables, functions and umask',
    async run(client, { session, folder }) {
      await client.commands.execute(`mkdir -p ${folder}; cd ${folder}; export A=1; B=2; f() { echo f$1; }; umask 027`, session);
      const result = await client.commands.execute('pwd; echo $A$B; f 7; umask', session);
      equal(result.stdout, `${folder}\n12\nf7\n0027`, 'stdout');
    },
  },
  {
    methods: execute,
    name: 'directory and environment of one call end with it',
    async run(client, { session }) {
      const options = { cwd: '/usr', env: { ONLY_HERE: 'x y' } };
      equal((await client.commands.execute('pwd; echo "$ONLY_HERE"', session, options)).stdout, '/usr\nx y', 'inside');
      equal((await client.commands.execute('echo "[$ONLY_HERE]"; pwd', session)).stdout, '[]\n/workspace', 'after');
    },
  },
  {
    methods: execute,
    name: 'a directory that is not there fails the command',
    async run(client, { session }) {
      const result = await client.commands.execute('pwd', session, { cwd: '/no/such' });
      equal(result.exitCode, 1, 'status');
      check(result.stderr.includes('/no/such'), `stderr names it: ${result.stderr}`);
    },
  },
  {
    methods: execute,
    name: 'shell syntax of every kind leaves the session whole',
    async run(client, { session }) {
      const run = (command) => client.commands.execute(command, session);
      equal((await run("cat <<'EOF'\na $b\nEOF")).stdout, 'a $b', 'heredoc');
      equal((await run('cat <<< here')).stdout, 'here', 'here-string');
      check((await run('echo "unbalanced')).exitCode !== 0, 'unbalanced quote');
      check((await run('if; then')).exitCode !== 0, 'syntax error');
      equal((await run('cat; echo end')).stdout, 'end', 'stdin is empty');
      equal((await run('sleep 30 & echo started')).stdout, 'started', 'background job');
      equal((await run('echo still here')).stdout, 'still here', 'afterwards');
    },
  },
  {
    methods: execute,
    name: 'one newline at the end is taken off in a session, none without',
    async run(client, { session }) {
      equal((await client.commands.execute("printf 'a\\n\\n'", session)).stdout, 'a\n', 'session');
      equal((await client.commands.execute("printf 'a\\n\\n'", NO_SESSION)).stdout, 'a\n\n', 'none');
    },
  },
  {
    methods: execute,
    name: 'a timeout without a session kills with 124',
    async run(client) {
      const result = await client.commands.execute('sleep 60', NO_SESSION, { timeoutMs: 200 });
      equal(result.exitCode, 124, 'status');
      check(result.stderr.includes('timed out after 200ms'), result.stderr);
    },
  },
  {
    methods: execute,
    codes: ['COMMAND_EXECUTION_ERROR'],
    name: 'a timeout in a session is an error, and the session can be deleted',
    async run(client, { session }) {
      const error = await refused(client.commands.execute('sleep 60', session, { timeoutMs: 200 }), 'COMMAND_EXECUTION_ERROR');
      check(error.message.includes('200ms'), error.message);
      await client.utils.deleteSession(session);
      equal((await client.commands.execute('echo new', session)).stdout, 'new', 'a fresh shell');
    },
  },
  {
    methods: execute,
    codes: ['SESSION_TERMINATED'],
    name: 'exit ends the shell, the next call has a new one',
    async run(client, { session }) {
      const error = await refused(client.commands.execute('exit 5', session), 'SESSION_TERMINATED');
      check(error.message.includes('5'), error.message);
      equal((await client.commands.execute('echo again', session)).stdout, 'again', 'afterwards');
    },
  },
  {
    methods: execute,
    codes: ['SESSION_DESTROYED'],
    name: 'deleting a session ends its command',
    async run(client, { session }) {
      const running = client.commands.execute('sleep 60', session);
      const ended = refused(running, 'SESSION_DESTROYED');
      await new Promise((resolve) => setTimeout(resolve, 300));
      await client.utils.deleteSession(session);
      await ended;
    },
  },
  {
    methods: execute,
    codes: ['INVALID_COMMAND'],
    name: 'an empty command is refused',
    async run(client, { session }) {
      await refused(client.commands.execute('', session), 'INVALID_COMMAND');
    },
  },
  {
    methods: execute,
    name: 'a megabyte comes whole',
    async run(client, { session }) {
      const result = await client.commands.execute("head -c 1048576 /dev/zero | tr '\\0' x", session);
      equal(result.stdout.length, 1048576, 'length');
    },
  },
  {
    methods: stream,
    name: 'events in order, each as it is written',
    async run(client, { session }) {
      const events = [];
      let first;
      const begin = Date.now();
      for await (const event of parseEvents(await client.commands.executeStream('echo a; echo b >&2; sleep 1; echo c', session))) {
        if (event.type === 'stdout') first ??= Date.now() - begin;
        events.push(event);
      }
      equal(events[0].type, 'start', 'first');
      equal(textOf(events, 'stdout'), 'a\nc\n', 'stdout');
      equal(textOf(events, 'stderr'), 'b\n', 'stderr');
      equal([events.at(-1).type, events.at(-1).exitCode], ['complete', 0], 'last');
      check(first < 900, `the first line came after ${first} ms, not before the command's end`);
    },
  },
  {
    methods: stream,
    name: 'a failing command completes with its status, exit too',
    async run(client, { session }) {
      equal((await eventsOf(await client.commands.executeStream('false', session))).at(-1).exitCode, 1, 'false');
      equal((await eventsOf(await client.commands.executeStream('exit 4', session))).at(-1).exitCode, 4, 'exit 4');
    },
  },
  {
    methods: stream,
    name: 'twenty megabytes without a session arrive complete',
    async run(client) {
      const events = await eventsOf(await client.commands.executeStream("head -c 20971520 /dev/zero | tr '\\0' y", NO_SESSION));
      equal(textOf(events, 'stdout').length, 20971520, 'length');
    },
  },
  {
    methods: stream,
    name: 'a cancelled stream leaves the session usable',
    async run(client, { session }) {
      const reader = (await client.commands.executeStream('for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done', session)).getReader();
      await reader.read();
      await reader.cancel();
      equal((await client.commands.execute('echo after', session)).stdout, 'after', 'afterwards');
    },
  },
];
