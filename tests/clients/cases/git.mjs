import { createServer } from 'node:http';
import { check, equal, refused } from '../tap.mjs';

/** A repository with two branches, made with the agent's own git. */
async function makeRepository(client, { folder, session }) {
  const made = await client.commands.execute(`
    set +e; mkdir -p ${folder}/origin; cd ${folder}/origin; git init -q -b main .
    git config user.email a@b; git config user.name a; git config uploadpack.allowFilter true
    echo one > file; git add .; git commit -qm one; git branch other; cd /workspace`, session);
  equal(made.exitCode, 0, made.stderr);
  return `file://${folder}/origin`;
}

/** A server that wants a password and takes none. */
async function lockedServer() {
  const server = createServer((_, answer) => {
    answer.writeHead(401, { 'WWW-Authenticate': 'Basic realm="git"' });
    answer.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `127.0.0.1:${server.address().port}/private.git`, close: () => server.close() };
}

export default [
  {
    methods: ['git.checkout'],
    codes: ['GIT_AUTH_FAILED'],
    name: 'a wrong password',
    alone: 'a sandbox does not reach what listens on this machine',
    async run(client, at) {
      const server = await lockedServer();
      try {
        const error = await refused(client.git.checkout(`http://user:s3cret@${server.url}`, at.session, { targetDir: `${at.folder}/a` }), 'GIT_AUTH_FAILED');
        check(!JSON.stringify([error.message, error.context]).includes('s3cret'), 'no password in the error');
      } finally {
        server.close();
      }
    },
  },
  {
    methods: ['git.checkout'],
    codes: ['GIT_CLONE_FAILED'],
    name: 'a folder that has something in it',
    async run(client, at) {
      const url = await makeRepository(client, at);
      await client.files.writeFile(`${at.folder}/full/file`, 'mine', at.session);
      await refused(client.git.checkout(url, at.session, { targetDir: `${at.folder}/full` }), 'GIT_CLONE_FAILED');
      equal((await client.files.readFile(`${at.folder}/full/file`, at.session)).content, 'mine', 'still there');
    },
  },
  {
    methods: ['git.checkout'],
    name: 'a branch into a folder',
    async run(client, at) {
      const url = await makeRepository(client, at);
      const done = await client.git.checkout(url, at.session, { branch: 'other', targetDir: `${at.folder}/copy`, depth: 1 });
      equal([done.success, done.branch, done.targetDir], [true, 'other', `${at.folder}/copy`], 'answer');
      equal((await client.files.readFile(`${at.folder}/copy/file`, at.session)).content, 'one\n', 'content');
    },
  },
  {
    methods: ['git.checkout'],
    codes: ['GIT_BRANCH_NOT_FOUND', 'GIT_REPOSITORY_NOT_FOUND', 'INVALID_GIT_URL'],
    name: 'no such branch, repository, scheme',
    async run(client, at) {
      const url = await makeRepository(client, at);
      await refused(client.git.checkout(url, at.session, { branch: 'nope', targetDir: `${at.folder}/b` }), 'GIT_BRANCH_NOT_FOUND');
      await refused(client.git.checkout(`${url}-nope`, at.session, { targetDir: `${at.folder}/c` }), 'GIT_REPOSITORY_NOT_FOUND');
      await refused(client.git.checkout('ext::sh -c id', at.session, { targetDir: `${at.folder}/d` }), 'INVALID_GIT_URL');
    },
  },
  {
    methods: ['git.checkout'],
    codes: ['GIT_NETWORK_ERROR'],
    name: 'nobody listens, and the password stays secret',
    async run(client, at) {
      const error = await refused(client.git.checkout('http://user:s3cret@127.0.0.1:9/repo.git', at.session, { targetDir: `${at.folder}/e` }), 'GIT_NETWORK_ERROR');
      check(!JSON.stringify([error.message, error.context]).includes('s3cret'), 'no password in the error');
    },
  },
];
