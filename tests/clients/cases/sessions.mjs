import { check, equal, refused } from '../tap.mjs';

export default [
  {
    methods: [],
    codes: ['UNKNOWN_ERROR'],
    transports: ['http', 'websocket'],
    name: 'a route that is not there',
    async run(client) {
      await refused(client.utils.get('/api/no-such-route'), 'UNKNOWN_ERROR');
    },
  },
  {
    methods: [],
    codes: ['CONTAINER_UNAVAILABLE'],
    name: 'no commands while it is quiet',
    alone: 'only the daemon asks an agent to be quiet',
    async run(client, { host, session }) {
      const ask = (path) => fetch(`http://${host}/burrow/${path}`, { method: 'POST', body: '{}' });
      client.setRetryTimeoutMs(1);
      await ask('quiesce');
      try {
        const error = await refused(client.commands.execute('true', session), 'CONTAINER_UNAVAILABLE');
        equal(error.context.retryable, true, 'retryable');
      } finally {
        await ask('resume');
        client.setRetryTimeoutMs(120000);
      }
      equal((await client.commands.execute('echo on', session)).stdout, 'on', 'afterwards');
    },
  },
  {
    methods: ['utils.ping', 'utils.getVersion', 'utils.getCommands'],
    name: 'the agent answers',
    async run(client) {
      equal(await client.utils.ping(), 'healthy', 'ping');
      equal(typeof (await client.utils.getVersion()), 'string', 'version');
      equal(await client.utils.getCommands(), [], 'commands');
    },
  },
  {
    methods: ['utils.createSession', 'utils.deleteSession'],
    name: 'a session with a directory and an environment',
    async run(client, { session }) {
      const made = await client.utils.createSession({ id: session, env: { GREETING: 'hi' }, cwd: '/usr' });
      check(made.success, 'success');
      equal((await client.commands.execute('echo $GREETING; pwd', session)).stdout, 'hi\n/usr', 'inside');
      check((await client.utils.deleteSession(session)).success, 'deleted');
    },
  },
  {
    methods: ['utils.createSession'],
    codes: ['SESSION_ALREADY_EXISTS'],
    name: 'a second one of that name is refused',
    async run(client, { session }) {
      await client.utils.createSession({ id: session });
      const error = await refused(client.utils.createSession({ id: session }), 'SESSION_ALREADY_EXISTS');
      equal(error.context.sessionId, session, 'context');
    },
  },
  {
    methods: ['utils.deleteSession'],
    codes: ['INTERNAL_ERROR'],
    name: 'deleting one that is not there',
    async run(client) {
      await refused(client.utils.deleteSession('never-made'), 'INTERNAL_ERROR');
    },
  },
  {
    methods: ['utils.listSessions'],
    transports: ['rpc'],
    name: 'all sessions',
    async run(client, { session }) {
      await client.utils.createSession({ id: session });
      check((await client.utils.listSessions()).sessions.includes(session), 'it is in the list');
    },
  },
  {
    methods: ['utils.listSessions'],
    transports: ['http', 'websocket'],
    name: 'the client itself says that only RPC can',
    async run(client, { host, session }) {
      await client.utils.createSession({ id: session });
      const list = await (await fetch(`http://${host}/api/session/list`)).json();
      check(list.data.includes(session), 'but the route is there');
    },
  },
];
