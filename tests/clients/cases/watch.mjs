import { parseEvents } from '../clients.mjs';
import { check, equal, eventually, refused } from '../tap.mjs';

export default [
  {
    methods: ['watch.watch'],
    name: 'files that come, change and go, in new folders too',
    async run(client, { folder, session }) {
      await client.files.mkdir(folder, session, { recursive: true });
      const stream = await client.watch.watch({ path: folder, recursive: true, sessionId: session });
      const seen = new Set();
      const reading = (async () => {
        for await (const event of parseEvents(stream)) {
          if (event.type === 'event') seen.add(`${event.eventType} ${event.path.slice(folder.length + 1)}`);
          if (seen.has('create last')) break;
        }
      })();
      await new Promise((resolve) => setTimeout(resolve, 300));
      await client.files.writeFile(`${folder}/mine`, 'one', session);
      await client.files.writeFile(`${folder}/mine`, 'two', session);
      await client.commands.execute(`cd ${folder}; echo 1 > a; mkdir -p x/y; echo 2 > x/y/deep; rm a; mkdir .git; echo 3 > .git/ignored`, session);
      await eventually(async () => seen.has('create x/y/deep'), 'what is in new folders');
      await client.files.writeFile(`${folder}/last`, '', session);
      await reading;
      for (const wanted of ['create mine', 'modify mine', 'create a', 'delete a', 'create x', 'create x/y/deep'])
        check(seen.has(wanted), `${wanted} is among ${[...seen].join(', ')}`);
      check(![...seen].some((event) => /ignored|burrow-/.test(event)), `nothing of .git, no temporary file in ${[...seen].join(', ')}`);
    },
  },
  {
    methods: ['watch.checkChanges'],
    name: 'versions tell whether something changed',
    async run(client, { folder, session }) {
      await client.files.mkdir(folder, session, { recursive: true });
      const ask = (since) => client.watch.checkChanges({ path: folder, since, sessionId: session });
      const first = await ask();
      equal((await ask(first.version)).status, 'unchanged', 'nothing happened');
      await client.files.writeFile(`${folder}/new`, 'x', session);
      const changed = await eventually(async () => {
        const answer = await ask(first.version);
        return answer.status === 'changed' && answer;
      }, 'the change');
      equal((await ask(changed.version)).status, 'unchanged', 'from there on');
      equal((await ask('someone-else:1')).status, 'resync', 'a version of before');
    },
  },
  {
    methods: ['watch.watch', 'watch.checkChanges'],
    codes: ['PERMISSION_DENIED'],
    name: 'outside of the workspace, or nowhere',
    async run(client, { session }) {
      await refused(client.watch.checkChanges({ path: '/etc', sessionId: session }), 'PERMISSION_DENIED');
      await refused(client.watch.checkChanges({ path: '/workspace/no/such', sessionId: session }), 'FILE_NOT_FOUND');
    },
  },
];
