import { parseEvents, collectFile } from '../clients.mjs';
import { check, equal, refused } from '../tap.mjs';

/** A folder of its own for the case. */
async function make(client, { folder, session }) {
  await client.files.mkdir(folder, session, { recursive: true });
  return folder;
}

const all = async (stream) => {
  const pieces = [];
  for await (const piece of stream) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
};

export default [
  {
    methods: ['files.writeFile', 'files.readFile', 'files.exists'],
    name: 'text comes back as it was, in folders made on the way',
    async run(client, at) {
      const path = `${at.folder}/a/b/text.txt`;
      const text = 'one\ntwo\u00e4\u{1F980}\n';
      check((await client.files.writeFile(path, text, at.session)).success, 'written');
      const read = await client.files.readFile(path, at.session);
      equal([read.content, read.encoding, read.isBinary, read.size], [text, 'utf-8', false, Buffer.byteLength(text)], 'read');
      check(read.mimeType.startsWith('text/plain'), read.mimeType);
      equal((await client.files.exists(path, at.session)).exists, true, 'exists');
      equal((await client.files.exists(`${path}x`, at.session)).exists, false, 'does not');
    },
  },
  {
    methods: ['files.writeFile', 'files.readFile'],
    name: 'bytes come back as base64',
    async run(client, at) {
      const path = `${await make(client, at)}/image.png`;
      const bytes = Buffer.from(Array.from({ length: 512 }, (_, i) => i & 255));
      await client.files.writeFile(path, bytes.toString('base64'), at.session, { encoding: 'base64' });
      const read = await client.files.readFile(path, at.session);
      equal([read.encoding, read.isBinary, read.mimeType, read.size], ['base64', true, 'image/png', 512], 'kind');
      equal(Buffer.from(read.content, 'base64').equals(bytes), true, 'content');
    },
  },
  {
    methods: ['files.writeFile'],
    name: 'a relative path starts where the session is, and a mode stays',
    async run(client, at) {
      await make(client, at);
      await client.commands.execute(`cd ${at.folder}; echo old > script; chmod 754 script`, at.session);
      await client.files.writeFile('script', 'new', at.session);
      equal((await client.commands.execute('cat script; stat -c %a script; ls -A', at.session)).stdout, 'new754\nscript', 'file');
    },
  },
  {
    methods: ['files.readFileStream'],
    name: 'a large file in pieces',
    async run(client, at) {
      const path = `${await make(client, at)}/large.bin`;
      await client.commands.execute(`head -c 3000000 /dev/urandom > ${path}`, at.session);
      const { content } = await collectFile(await client.files.readFileStream(path, at.session));
      const digest = (await client.commands.execute(`sha256sum < ${path} | cut -c1-64`, at.session)).stdout;
      const { createHash } = await import('node:crypto');
      equal(createHash('sha256').update(content).digest('hex'), digest, 'digest');
    },
  },
  {
    methods: ['files.readFile'],
    transports: ['rpc'],
    name: 'raw bytes as a stream',
    async run(client, at) {
      const path = `${await make(client, at)}/raw`;
      await client.commands.execute(`head -c 1000000 /dev/zero > ${path}`, at.session);
      const read = await client.files.readFile(path, at.session, { encoding: 'none' });
      equal(read.size, 1000000, 'size');
      equal((await all(read.content)).length, 1000000, 'length');
    },
  },
  {
    methods: ['files.writeFileStream'],
    transports: ['rpc'],
    name: 'five megabytes go in as a stream',
    async run(client, at) {
      const path = `${at.folder}/streamed`;
      const piece = new Uint8Array(65536).fill(120);
      let left = 80;
      const content = new ReadableStream({
        pull(controller) {
          if (left-- > 0) controller.enqueue(piece);
          else controller.close();
        },
      });
      const written = await client.files.writeFileStream(path, content, at.session);
      equal(written.bytesWritten, 80 * 65536, 'bytesWritten');
      equal((await client.commands.execute(`stat -c %s ${path}; ls -A ${at.folder}`, at.session)).stdout, `${80 * 65536}\nstreamed`, 'on disk');
    },
  },
  {
    methods: ['files.writeFileStream'],
    codes: ['OPERATION_INTERRUPTED'],
    transports: ['rpc'],
    name: 'a stream that breaks off leaves the old content',
    async run(client, at) {
      const path = `${at.folder}/half`;
      await client.files.writeFile(path, 'old', at.session);
      let pieces = 0;
      const content = new ReadableStream({
        pull(controller) {
          if (pieces++ < 3) controller.enqueue(new Uint8Array(1000));
          else controller.error(new Error('no more'));
        },
      });
      await refused(client.files.writeFileStream(path, content, at.session), 'OPERATION_INTERRUPTED');
      equal((await client.files.readFile(path, at.session)).content, 'old', 'content');
    },
  },
  {
    methods: ['files.writeFileStream'],
    transports: ['http', 'websocket'],
    name: 'the client itself says that only RPC can',
    async run(client) {
      try {
        client.files.writeFileStream('/x', null, 's');
      } catch (error) {
        check(error.message.includes('rpc'), error.message);
        return;
      }
      check(false, 'no error');
    },
  },
  {
    methods: ['files.mkdir', 'files.listFiles'],
    name: 'folders and what is in them',
    async run(client, at) {
      await make(client, at);
      await client.commands.execute(`cd ${at.folder}; mkdir sub; echo 12345 > file; chmod 640 file; ln -s file link; touch .hidden sub/deep`, at.session);
      const list = await client.files.listFiles(at.folder, at.session);
      const byName = Object.fromEntries(list.files.map((file) => [file.name, file]));
      equal(Object.keys(byName).sort(), ['file', 'link', 'sub'], 'names');
      equal(list.count, 3, 'count');
      equal([byName.file.type, byName.file.size, byName.file.mode], ['file', 6, 'rw-r-----'], 'file');
      equal([byName.link.type, byName.sub.type], ['symlink', 'directory'], 'types');
      equal(byName.file.permissions, { readable: true, writable: true, executable: false }, 'permissions');
      equal([byName.file.absolutePath, byName.file.relativePath], [`${at.folder}/file`, 'file'], 'paths');
      const everything = await client.files.listFiles(at.folder, at.session, { recursive: true, includeHidden: true });
      equal(everything.files.map((file) => file.relativePath).sort(), ['.hidden', 'file', 'link', 'sub', 'sub/deep'], 'recursive');
    },
  },
  {
    methods: ['files.renameFile', 'files.moveFile', 'files.deleteFile'],
    name: 'renamed, moved, deleted',
    async run(client, at) {
      await make(client, at);
      await client.files.writeFile(`${at.folder}/one`, '1', at.session);
      await client.files.mkdir(`${at.folder}/sub`, at.session);
      await client.files.renameFile(`${at.folder}/one`, `${at.folder}/two`, at.session);
      await client.files.moveFile(`${at.folder}/two`, `${at.folder}/sub/three`, at.session);
      equal((await client.files.readFile(`${at.folder}/sub/three`, at.session)).content, '1', 'content');
      await client.files.deleteFile(`${at.folder}/sub/three`, at.session);
      equal((await client.files.exists(`${at.folder}/sub/three`, at.session)).exists, false, 'gone');
    },
  },
  {
    methods: ['files.moveFile'],
    codes: ['FILE_EXISTS'],
    name: 'a folder is not moved over one with something in it',
    async run(client, at) {
      await client.files.writeFile(`${at.folder}/from/box/mine`, '1', at.session);
      await client.files.writeFile(`${at.folder}/to/box/theirs`, '2', at.session);
      await refused(client.files.moveFile(`${at.folder}/from/box`, `${at.folder}/to`, at.session), 'FILE_EXISTS');
      equal((await client.files.readFile(`${at.folder}/from/box/mine`, at.session)).content, '1', 'still there');
      equal((await client.files.readFile(`${at.folder}/to/box/theirs`, at.session)).content, '2', 'and this');
    },
  },
  {
    methods: ['files.readFile'],
    codes: ['VALIDATION_FAILED'],
    name: 'an empty path is refused',
    async run(client, at) {
      const error = await refused(client.files.readFile('', at.session), 'VALIDATION_FAILED');
      equal(error.context.validationErrors[0].field, 'path', 'context');
    },
  },
  {
    methods: ['files.readFile', 'files.deleteFile', 'files.listFiles'],
    codes: ['FILE_NOT_FOUND'],
    name: 'what is not there',
    async run(client, at) {
      const error = await refused(client.files.readFile('/no/such', at.session), 'FILE_NOT_FOUND');
      equal(error.context.path, '/no/such', 'context');
      await refused(client.files.deleteFile('/no/such', at.session), 'FILE_NOT_FOUND');
      await refused(client.files.listFiles('/no/such', at.session), 'FILE_NOT_FOUND');
    },
  },
  {
    methods: ['files.readFile', 'files.deleteFile', 'files.listFiles', 'files.mkdir'],
    codes: ['IS_DIRECTORY', 'NOT_DIRECTORY', 'FILESYSTEM_ERROR'],
    name: 'folders where files are meant, and the other way round',
    async run(client, at) {
      await make(client, at);
      await client.files.writeFile(`${at.folder}/file`, 'x', at.session);
      await refused(client.files.readFile(at.folder, at.session), 'IS_DIRECTORY');
      await refused(client.files.deleteFile(at.folder, at.session), 'IS_DIRECTORY');
      await refused(client.files.listFiles(`${at.folder}/file`, at.session), 'NOT_DIRECTORY');
      await refused(client.files.mkdir(at.folder, at.session), 'FILESYSTEM_ERROR');
    },
  },
  {
    methods: ['files.writeFile', 'files.readFile'],
    codes: ['NAME_TOO_LONG', 'TOO_MANY_LINKS', 'READ_ONLY', 'FILE_TOO_LARGE'],
    name: 'too long, in circles, read-only, too large',
    async run(client, at) {
      await make(client, at);
      await refused(client.files.writeFile(`${at.folder}/${'n'.repeat(300)}`, 'x', at.session), 'NAME_TOO_LONG');
      await client.commands.execute(`cd ${at.folder}; ln -s b a; ln -s a b; truncate -s 40M large`, at.session);
      await refused(client.files.readFile(`${at.folder}/a`, at.session), 'TOO_MANY_LINKS');
      await refused(client.files.writeFile('/usr/not-here', 'x', at.session), 'READ_ONLY');
      const error = await refused(client.files.readFile(`${at.folder}/large`, at.session), 'FILE_TOO_LARGE');
      equal([error.context.maxSize, error.context.actualSize], [32 << 20, 40 << 20], 'sizes');
    },
  },
  {
    methods: ['files.writeFile'],
    codes: ['NO_SPACE'],
    name: 'a full disk leaves the old content',
    alone: 'it mounts, which sandboxes may not',
    async run(client, at) {
      await make(client, at);
      const mounted = await client.commands.execute(`mount -t tmpfs -o size=1m tmpfs ${at.folder} && echo old > ${at.folder}/file`, at.session);
      equal(mounted.exitCode, 0, mounted.stderr);
      await refused(client.files.writeFile(`${at.folder}/file`, 'x'.repeat(4 << 20), at.session), 'NO_SPACE');
      equal((await client.files.readFile(`${at.folder}/file`, at.session)).content, 'old\n', 'content');
      equal((await client.commands.execute(`ls -A ${at.folder}`, at.session)).stdout, 'file', 'nothing else');
    },
  },
  {
    methods: ['files.readFileStream'],
    name: 'a stream of what is not there says so',
    async run(client, at) {
      const events = [];
      try {
        for await (const event of parseEvents(await client.files.readFileStream('/no/such', at.session))) events.push(event);
      } catch (error) {
        equal(error.code, 'FILE_NOT_FOUND', 'code');
        return;
      }
      equal(events.at(-1)?.type, 'error', 'last event');
    },
  },
];
