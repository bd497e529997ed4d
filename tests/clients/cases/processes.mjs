import { parseEvents } from '../clients.mjs';
import { check, equal, eventually, refused } from '../tap.mjs';

const statusOf = async (client, id) => (await client.processes.getProcess(id)).process.status;

export default [
  {
    methods: ['processes.startProcess', 'processes.getProcess', 'processes.listProcesses', 'processes.getProcessLogs'],
    name: 'from start to end',
    async run(client, { session }) {
      const started = await client.processes.startProcess('echo one; echo two >&2; sleep 1; exit 3', session);
      check(/^proc_\d+_[0-9a-z]{6}$/.test(started.processId), started.processId);
      check(started.pid > 1, `pid ${started.pid}`);
      equal(await statusOf(client, started.processId), 'running', 'while it runs');
      await eventually(async () => (await statusOf(client, started.processId)) === 'failed', 'its end');
      const { process } = await client.processes.getProcess(started.processId);
      equal([process.exitCode, process.command.endsWith('exit 3')], [3, true], 'process');
      check((await client.processes.listProcesses()).processes.some(({ id }) => id === started.processId), 'listed');
      const logs = await client.processes.getProcessLogs(started.processId);
      equal([logs.stdout, logs.stderr], ['one\n', 'two\n'], 'logs');
    },
  },
  {
    methods: ['processes.startProcess'],
    name: 'an id, a directory and an environment of its own',
    async run(client, { session }) {
      const processId = `mine-${session}`;
      await client.commands.execute('export FROM_SESSION=yes', session);
      equal((await client.processes.startProcess('pwd; echo $X $FROM_SESSION', session, { processId, cwd: '/usr', env: { X: '1' } })).processId, processId, 'id');
      await eventually(async () => (await statusOf(client, processId)) === 'completed', 'its end');
      equal((await client.processes.getProcessLogs(processId)).stdout, '/usr\n1 yes\n', 'logs');
    },
  },
  {
    methods: ['processes.streamProcessLogs'],
    name: 'what was written before, what comes, and the end',
    async run(client, { session }) {
      const { processId } = await client.processes.startProcess('echo early; sleep 0.5; echo late; exit 2', session);
      await new Promise((resolve) => setTimeout(resolve, 200));
      const events = [];
      for await (const event of parseEvents(await client.processes.streamProcessLogs(processId))) events.push(event);
      equal(events.filter(({ type }) => type === 'stdout').map(({ data }) => data).join(''), 'early\nlate\n', 'stdout');
      equal([events.at(-1).type, events.at(-1).exitCode], ['exit', 2], 'last');
    },
  },
  {
    methods: ['processes.killProcess'],
    codes: ['COMMAND_NOT_FOUND'],
    name: 'a kill takes the whole tree, a second one is refused',
    async run(client, { session }) {
      const mark = `71${Math.floor(Math.random() * 1e6)}`;
      const { processId } = await client.processes.startProcess(`(setsid sleep ${mark} &) ; sleep ${mark}`, session);
      await eventually(async () => (await client.commands.execute(`pgrep -cf 'sleep ${mark}'`, '__DISABLE_SESSION__')).stdout.trim() >= '2', 'both run');
      check((await client.processes.killProcess(processId)).success, 'killed');
      await eventually(async () => (await statusOf(client, processId)) === 'killed', 'status');
      await eventually(async () => (await client.commands.execute(`pgrep -x sleep -a | grep -c ${mark}`, '__DISABLE_SESSION__')).stdout.trim() === '0', 'all gone');
      await refused(client.processes.killProcess(processId), 'COMMAND_NOT_FOUND');
    },
  },
  {
    methods: ['processes.killAllProcesses'],
    name: 'all at once',
    async run(client, { session }) {
      await client.processes.killAllProcesses();
      for (let i = 0; i < 3; i++) await client.processes.startProcess('sleep 60', session);
      equal((await client.processes.killAllProcesses()).cleanedCount, 3, 'count');
    },
  },
  {
    methods: ['processes.getProcess', 'processes.getProcessLogs', 'processes.killProcess'],
    codes: ['PROCESS_NOT_FOUND'],
    name: 'one that never was',
    async run(client) {
      const error = await refused(client.processes.getProcess('nobody'), 'PROCESS_NOT_FOUND');
      equal(error.context.processId, 'nobody', 'context');
      await refused(client.processes.getProcessLogs('nobody'), 'PROCESS_NOT_FOUND');
      await refused(client.processes.killProcess('nobody'), 'PROCESS_NOT_FOUND');
    },
  },
  {
    methods: ['processes.startProcess'],
    codes: ['RESOURCE_BUSY'],
    name: 'an id that a living one has',
    async run(client, { session }) {
      const processId = `busy-${session}`;
      await client.processes.startProcess('sleep 60', session, { processId });
      await refused(client.processes.startProcess('true', session, { processId }), 'RESOURCE_BUSY');
      await client.processes.killProcess(processId);
    },
  },
  {
    methods: [],
    codes: ['PORT_OPERATION_ERROR'],
    transports: ['rpc'],
    name: 'tunnels are made elsewhere',
    async run(client) {
      await refused(client.tunnels.runQuickTunnel('one', 8080), 'PORT_OPERATION_ERROR');
      equal(await client.tunnels.listTunnels(), [], 'none');
    },
  },
  {
    methods: ['processes.startProcess'],
    codes: ['PROCESS_ERROR'],
    name: 'one that cannot be started',
    async run(client, { session }) {
      const error = await refused(client.processes.startProcess('true', session, { cwd: '/no/such' }), 'PROCESS_ERROR');
      check(error.message.length > 0, 'a message');
    },
  },
  {
    methods: ['processes.startProcess'],
    codes: ['INVALID_COMMAND'],
    name: 'an empty command',
    async run(client, { session }) {
      await refused(client.processes.startProcess('', session), 'INVALID_COMMAND');
    },
  },
  {
    methods: ['ports.watchPort'],
    transports: ['http', 'rpc'], // the client has no code for refused streams over websocket
    name: 'a port that cannot be',
    async run(client) {
      await refused(client.ports.watchPort({ port: 99999, mode: 'tcp' }), 'VALIDATION_FAILED');
    },
  },
  {
    methods: ['ports.watchPort'],
    name: 'a port that opens later',
    async run(client, { session }) {
      const port = 20000 + Math.floor(Math.random() * 20000);
      const { processId } = await client.processes.startProcess(`sleep 0.5; exec python3 -m http.server --bind 127.0.0.1 ${port}`, session);
      const events = [];
      for await (const event of parseEvents(await client.ports.watchPort({ port, mode: 'http', path: '/', processId }))) events.push(event);
      equal(events.map(({ type }) => type), ['watching', 'ready'], 'events');
      equal(events[1].statusCode, 200, 'status');
      await client.processes.killProcess(processId);
    },
  },
  {
    methods: ['ports.watchPort'],
    name: 'a process that ends before',
    async run(client, { session }) {
      const { processId } = await client.processes.startProcess('sleep 0.2; exit 7', session);
      const events = [];
      for await (const event of parseEvents(await client.ports.watchPort({ port: 19999, mode: 'tcp', processId }))) events.push(event);
      equal([events.at(-1).type, events.at(-1).exitCode], ['process_exited', 7], 'last');
    },
  },
];
