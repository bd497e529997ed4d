import { check, equal, refused } from '../tap.mjs';

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
    },
  },
];
