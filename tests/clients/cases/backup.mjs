import { Store, etagOf } from '../store.mjs';
import { check, equal, refused } from '../tap.mjs';

const CA = '/run/store-ca.pem'; // which the agent is told to trust: tests/lib/client_cases.py
const LINES = 400000;
const CONTENT = Buffer.from(Array.from({ length: LINES }, (_, index) => `${index + 1}\n`).join(''));

/** A store that the agent trusts, and an archive that holds CONTENT. */
async function withStore(client, at, use) {
  const store = await Store.start();
  const archive = `/var/backups/${at.session}.bin`;
  const part = (partNumber, path, offset, size, host) => ({ partNumber, url: store.url(path, host), offset, size });
  try {
    await client.files.writeFile(CA, store.ca, at.session);
    await client.commands.execute(`seq 1 ${LINES} > ${archive}`, at.session);
    await use(store, part, (...parts) => client.backup.uploadParts({ archivePath: archive, parts }));
  } finally {
    store.end();
  }
}

/** The error of an upload, which never shows what is signed. */
async function fails(promise, text) {
  const error = await refused(promise, 'BACKUP_CREATE_FAILED');
  check(error.message.includes(text), `${error.message} has no ${text}`);
  check(!JSON.stringify([error.message, error.errorResponse]).includes('s3cret'), 'the signature is told');
}

export default [
  {
    methods: ['backup.createArchive', 'backup.restoreArchive'],
    name: 'a folder goes and comes back',
    async run(client, at) {
      const archive = `/var/backups/${at.session}.sqsh`;
      await client.commands.execute(`mkdir -p ${at.folder}/keep ${at.folder}/skip; cd ${at.folder}; echo a > keep/a; echo b > skip/b; chmod 751 keep; cd /`, at.session);
      const made = await client.backup.createArchive(at.folder, archive, at.session, { excludes: ['skip'], compression: { format: 'gzip' } });
      check(made.success && made.sizeBytes > 0, JSON.stringify(made));
      await client.commands.execute(`rm -rf ${at.folder}/keep`, at.session);
      equal((await client.backup.restoreArchive(at.folder, archive, at.session)).success, true, 'restored');
      equal((await client.commands.execute(`cat ${at.folder}/keep/a; stat -c %a ${at.folder}/keep`, at.session)).stdout, 'a\n751', 'content');
    },
  },
  {
    methods: ['backup.createArchive', 'backup.restoreArchive'],
    codes: ['INVALID_BACKUP_CONFIG', 'BACKUP_NOT_FOUND'],
    name: 'wrong places, no archive',
    async run(client, at) {
      await refused(client.backup.createArchive('/etc', '/var/backups/x.sqsh', at.session), 'INVALID_BACKUP_CONFIG');
      await refused(client.backup.createArchive('/workspace', '/tmp/x.sqsh', at.session), 'INVALID_BACKUP_CONFIG');
      await refused(client.backup.restoreArchive('/workspace/r', '/var/backups/none.sqsh', at.session), 'BACKUP_NOT_FOUND');
    },
  },
  {
    methods: ['backup.createArchive', 'backup.restoreArchive'],
    codes: ['BACKUP_CREATE_FAILED', 'BACKUP_RESTORE_FAILED'],
    name: 'nothing to save, an archive that is none',
    async run(client, at) {
      await refused(client.backup.createArchive(`${at.folder}/none`, `/var/backups/${at.session}.sqsh`, at.session), 'BACKUP_CREATE_FAILED');
      await client.files.writeFile(`/var/backups/${at.session}.sqsh`, 'no archive', at.session);
      await client.files.writeFile(`${at.folder}/keep`, 'mine', at.session);
      await refused(client.backup.restoreArchive(at.folder, `/var/backups/${at.session}.sqsh`, at.session), 'BACKUP_RESTORE_FAILED');
      equal((await client.files.readFile(`${at.folder}/keep`, at.session)).content, 'mine', 'still there');
    },
  },
  {
    methods: ['backup.uploadParts'],
    name: 'parts go where they are told, and only by https',
    async run(client, at) {
      await refused(client.backup.uploadParts({ archivePath: '/var/backups/none.sqsh', parts: [{ partNumber: 1, url: 'ftp://x/y', offset: 0, size: 1 }] }), 'INVALID_BACKUP_CONFIG');
      await refused(client.backup.uploadParts({ archivePath: '/var/backups/none.sqsh', parts: [{ partNumber: 1, url: 'https://localhost/y', offset: 0, size: 1 }] }), 'BACKUP_NOT_FOUND');
    },
  },
  {
    methods: ['backup.uploadParts'],
    name: 'every part arrives whole, and its ETag comes back',
    alone: 'a sandbox does not reach what listens on this machine',
    run: (client, at) =>
      withStore(client, at, async (store, part, upload) => {
        const bounds = [['good/2', 1000000, 1500000], ['good/1', 0, 1000000], ['slow/3', 2500000, CONTENT.length - 2500000]];
        const sent = await upload(...bounds.map(([path, offset, size]) => part(Number(path.slice(-1)), path, offset, size)));
        equal(sent.success, true, 'success');
        for (const [path, offset, size] of bounds) {
          const bytes = CONTENT.subarray(offset, offset + size);
          check(store.parts.get(path)?.equals(bytes), `other bytes: ${path}`);
          equal(sent.parts[Number(path.slice(-1)) - 1], { partNumber: Number(path.slice(-1)), etag: etagOf(bytes) }, path);
        }
        equal((await upload()).parts, [], 'no parts');
      }),
  },
  {
    methods: ['backup.uploadParts'],
    codes: ['BACKUP_CREATE_FAILED', 'INVALID_BACKUP_CONFIG'],
    name: 'parts that fail are tried again, then told',
    alone: 'a sandbox does not reach what listens on this machine',
    run: (client, at) =>
      withStore(client, at, async (store, part, upload) => {
        equal((await upload(part(1, 'flaky/1', 5, 100000))).parts[0].etag, etagOf(CONTENT.subarray(5, 100005)), 'at the third attempt');
        equal(store.attempts.get('flaky/1'), 3, 'attempts');
        await fails(upload(part(1, 'good/1', 0, 10), part(2, 'broken/2', 10, 10), part(3, 'never/3', 20, 10)), 'part 2: the server answered HTTP 500');
        equal([store.attempts.get('broken/2'), store.attempts.has('never/3')], [3, false], 'attempts, and what comes behind');
        await fails(upload(part(1, 'forbidden/1', 0, 10)), 'HTTP 403');
        await fails(upload(part(1, 'nameless/1', 0, 10)), 'ETag');
        await fails(upload(part(1, 'cut/1', 0, 10)), 'part 1');
        await fails(upload(part(1, 'half/1', 0, 2000000)), 'part 1');
        await refused(upload(part(1, 'never/1', CONTENT.length - 5, 6)), 'INVALID_BACKUP_CONFIG');
        equal(store.attempts.has('never/1'), false, 'of a part that is not inside the archive');
      }),
  },
  {
    methods: ['backup.uploadParts'],
    name: 'nothing is sent to a server that is not who it should be',
    run: (client, at) =>
      withStore(client, at, async (store, part, upload) => {
        const stranger = await Store.start();
        try {
          await fails(upload(part(1, 'good/1', 0, 10, '127.0.0.1')), 'part 1');
          await fails(upload({ partNumber: 1, url: stranger.url('good/1'), offset: 0, size: 10 }), 'part 1');
          equal([store.attempts.size, stranger.attempts.size], [0, 0], 'what they got');
        } finally {
          stranger.end();
        }
      }),
  },
];
