import { describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { type ShellOutput, type WorkspaceCaller, workspaceCaller } from '../harness/workspaces.ts'

const newWorkspace = (options: Parameters<typeof workspaceCaller>[1] = {}): WorkspaceCaller =>
  workspaceCaller(gateway().toolsUrl, options)

const textOf = async (caller: WorkspaceCaller, name: string, arguments_: unknown): Promise<unknown> =>
  (await caller.call(name, arguments_)).members.output

describe('shell', () => {
  it('ends with the members of the official shell_call, and the output', async () => {
    const { status, members } = await newWorkspace().call('shell', {
      commands: ['echo hello; echo problem >&2; exit 3'],
      timeout_ms: null,
      max_output_length: null,
    })
    expect(status).toBe('completed')
    expect(members).toEqual({
      action: {
        commands: ['echo hello; echo problem >&2; exit 3'],
        timeout_ms: 30_000,
        max_output_length: 65_536,
      },
      output: [{ stdout: 'hello\n', stderr: 'problem\n', outcome: { type: 'exit', exit_code: 3 } }],
    })
  })

  it('shares variables and the working directory between the commands of a call, and files between calls', async () => {
    const caller = newWorkspace()
    const { members } = await caller.call('shell', {
      commands: ['mkdir -p a; cd a; name=ada', 'echo "$name in $PWD" > note', 'cat note'],
    })
    expect((members.output as ShellOutput[]).map(({ stdout }) => stdout)).toEqual([
      '',
      '',
      'ada in /workspace/a\n',
    ])
    expect((await caller.shell('pwd; cat a/note; echo $name')).stdout).toBe(
      '/workspace\nada in /workspace/a\n\n',
    )
    expect((await caller.shell('echo kept > /tmp/x')).outcome.exit_code).toBe(0)
    expect((await caller.shell('cat /tmp/x')).stdout).toBe('kept\n')
  })

  it('works on text with the usual commands', async () => {
    const { stdout, stderr } = await newWorkspace().shell(`
      printf 'b,2\\na,1\\nü,3\\n' > data.csv
      sort data.csv | awk -F, '{s += $2; print $1} END {print s}'
      sed -i 's/a/z/' data.csv && grep -c z data.csv
      echo '{"items":[{"n":1},{"n":2}]}' | jq -c '[.items[].n]'
      gzip -c data.csv | gunzip | wc -l
      cp -r . /tmp/copy && mv data.csv moved.csv && ls && ls /tmp/copy && rm -r /tmp/copy
      find . -name '*.csv' | while read -r f; do basename "$f"; done`)
    expect(stderr).toBe('')
    expect(stdout).toBe('a\nb\nü\n6\n1\n[1,2]\n3\nmoved.csv\ndata.csv\nmoved.csv\n')
  })

  it('compares files, which it refuses only where that takes long', async () => {
    const caller = newWorkspace()
    const { stdout, stderr } = await caller.shell(`
      seq 9000 > a; sed 's/^4500$/x/' a > b; diff a b; echo $?; diff -q a b; cat b | diff a - | wc -l; diff a a; echo $?; diff a absent; echo $?`)
    const hunk = '@@ -4497,7 +4497,7 @@\n 4497\n 4498\n 4499\n-4500\n+x\n 4501\n 4502\n 4503\n'
    expect(stdout).toContain(`${hunk}1\nFiles a and b differ\n`)
    expect(stdout).toMatch(/\n12\n0\n2\n$/)
    expect(stderr).toBe('diff: absent: No such file or directory\n')
    const unlike = await caller.shell('sort -r a > c; diff a c | wc -l')
    expect(unlike.stderr).toBe('diff: the files are too large or too different; compare parts of them\n')
  })

  // The runtime ends a call after ten seconds of processor time, which a busy machine can need for these steps.
  it('ends nested loops of awk, sed and jq after the steps that the commands of a call have together', {
    retry: 2,
  }, async () => {
    const { members } = await newWorkspace().call('shell', {
      commands: [
        "awk 'BEGIN{for(i=0;i<999;i++)n+=i; print n}'",
        "awk 'BEGIN{for(i=0;i<9999;i++)for(j=0;j<9999;j++)for(k=0;k<9999;k++)n++}'; echo after",
        "echo xx | sed 's/x/y/'",
        "jq -n '[range(3)]'",
      ],
    })
    const reason = 'the commands of a call may take 2000000 steps together\n'
    expect((members.output as ShellOutput[]).map(({ stdout, stderr }) => stdout + stderr)).toEqual([
      '498501\n',
      `after\nawk: ${reason}`,
      `sed: ${reason}`,
      `jq: parse error: ${reason}`,
    ])
  })

  it('ends a command at its time limit, and does not run those after it', async () => {
    const started = Date.now()
    const { members } = await newWorkspace().call('shell', {
      commands: ['echo begun; sleep 20; echo never', 'echo after'],
      timeout_ms: 300,
    })
    expect(Date.now() - started).toBeLessThan(10_000)
    const [first, second] = members.output as ShellOutput[]
    expect(first?.outcome).toEqual({ type: 'timeout' })
    expect(second).toEqual({
      stdout: '',
      stderr: expect.stringContaining('Not run'),
      outcome: { type: 'timeout' },
    })
  })

  it('cuts output in its middle, at characters', async () => {
    const command = "seq 3000 | sed 's/^/äöü line /'"
    const { stdout } = await newWorkspace().shell(command, { max_output_length: 1_000 })
    expect(stdout).toMatch(/^äöü line 1\n/)
    expect(stdout).toMatch(/\n\[… \d+ bytes cut …\]\n/)
    expect(stdout).toMatch(/äöü line 3000\n$/)
    expect(stdout).not.toContain('\ufffd')
    expect(Buffer.byteLength(stdout)).toBeLessThan(1_100)
  })

  it('has no network, and no command that would run code of the host', async () => {
    const caller = newWorkspace()
    for (const command of [
      'curl http://127.0.0.1',
      'wget x',
      'python3 -c 1',
      'node -e 1',
      'js-exec 1',
      'sqlite3 x',
    ]) {
      const { stderr, outcome } = await caller.shell(command)
      expect([command, outcome.exit_code]).toEqual([command, 127])
      expect(stderr).toMatch(/not found|not available/)
    }
  })

  it('has curl for hosts that are allowed, and for no address of this machine', async () => {
    const caller = newWorkspace({
      shell: { allow: ['allowed.example', '127.0.0.1', '*.internal'], deny: [] },
    })
    const port = new URL(gateway().baseUrl).port
    const addresses = [
      'https://other.example/',
      `http://127.0.0.1:${port}/health`,
      'https://127.0.0.1/',
      'https://metadata.google.internal/',
    ]
    for (const address of addresses) {
      const { stdout, stderr, outcome } = await caller.shell(`curl -sS ${address}`)
      expect([address, stdout, outcome.exit_code === 0]).toEqual([address, '', false])
      expect(stderr).toMatch(/not allow|only https/)
    }
  })

  it('unpacks gzip only: it has no other archives', async () => {
    const names =
      'tar unzip zip xz unxz bzip2 zstd lz4 7z cpio ar brotli uncompress busybox openssl unrar zgrep xzcat'
    const commands = names.split(' ').map((name) => `${name} --version`)
    const { members } = await newWorkspace().call('shell', { commands })
    for (const { stdout, outcome } of members.output as ShellOutput[]) {
      expect([stdout, outcome]).toEqual(['', { type: 'exit', exit_code: 127 }])
    }
  })

  it('reports a write that is not possible, and continues', async () => {
    const { stdout, stderr, outcome } = await newWorkspace().shell(
      'echo x > /etc/passwd; echo x > a/b; echo after',
    )
    expect(stdout).toBe('after\n')
    expect(stderr).toMatch(/ENOENT.*\/etc\/passwd[\s\S]*ENOENT.*\/workspace\/a\/b/)
    expect(outcome.exit_code).toBe(1)
  })

  it('tells a model what is wrong with its arguments', async () => {
    const caller = newWorkspace()
    await expect(caller.call('shell', '{')).rejects.toThrow('The arguments are not valid JSON.')
    await expect(caller.call('shell', {})).rejects.toThrow('The arguments do not fit: commands: is required')
    await expect(caller.call('shell', { commands: [], timeout_ms: 40_000, more: 1 })).rejects.toThrow(
      /commands: .*; timeout_ms: .*30000.*more/,
    )
  })
})

describe('files', () => {
  it('are written, read in parts, listed and searched', async () => {
    const caller = newWorkspace()
    const content = Array.from({ length: 1_200 }, (_, index) => `line ${index + 1}`).join('\n')
    expect(await textOf(caller, 'write_file', { path: 'src/long.txt', content })).toBe(
      `Created /workspace/src/long.txt (${content.length} bytes).`,
    )
    expect(
      await textOf(caller, 'write_file', { path: '/workspace/b.ts', content: 'const Line = 1\n' }),
    ).toContain('Created')
    expect(await textOf(caller, 'read_file', { path: 'b.ts', offset: null, limit: null })).toBe(
      '1\tconst Line = 1',
    )
    expect(await textOf(caller, 'read_file', { path: 'src/long.txt', offset: 1_199, limit: 1 })).toBe(
      '1199\tline 1199\n[lines 1199 to 1199 of 1200]',
    )
    expect(await textOf(caller, 'list_files', {})).toBe(
      `/workspace/b.ts 15\n/workspace/src/\n/workspace/src/long.txt ${content.length}`,
    )
    const search = { pattern: '^CONST line|line 1200$', path: '.', glob: null, ignore_case: true }
    expect(await textOf(caller, 'search_files', search)).toBe(
      '/workspace/b.ts:1: const Line = 1\n/workspace/src/long.txt:1200: line 1200',
    )
    expect(await textOf(caller, 'search_files', { ...search, glob: '*.{ts,js}' })).not.toContain('long.txt')
    expect(await textOf(caller, 'search_files', { pattern: 'nothing' })).toBe('No line matches.')
    expect((await caller.shell('wc -l < src/long.txt')).stdout.trim()).toBe('1199')
  })

  it('are changed by a patch, wholly or not at all', async () => {
    const caller = newWorkspace()
    await caller.call('write_file', { path: 'a.txt', content: 'one\ntwo\nthree\n' })
    await caller.call('write_file', { path: 'old.txt', content: 'old\n' })
    const patch = `*** Begin Patch
*** Update File: a.txt
@@
 one
-two
+zwei
*** Add File: dir/new.txt
+new
*** Delete File: old.txt
*** End Patch`
    expect(await textOf(caller, 'apply_patch', { patch })).toBe(
      'updated /workspace/a.txt\nadded /workspace/dir/new.txt\ndeleted /workspace/old.txt',
    )
    const wrong =
      '*** Begin Patch\n*** Delete File: a.txt\n*** Update File: dir/new.txt\n@@\n-absent\n+x\n*** End Patch'
    await expect(caller.call('apply_patch', { patch: wrong })).rejects.toThrow(/hunk 1.*"absent"/)
    expect((await caller.shell('cat a.txt dir/new.txt; ls')).stdout).toBe(
      'one\nzwei\nthree\nnew\na.txt\ndir\n',
    )
  })

  it('refuses with a reason that a model can act on', async () => {
    const caller = newWorkspace()
    await caller.shell("printf 'a\\0b' > binary")
    const refused = (name: string, arguments_: object) => expect(caller.call(name, arguments_)).rejects
    await refused('read_file', { path: 'absent' }).toThrow("no such file or directory, '/workspace/absent'")
    await refused('read_file', { path: '.' }).toThrow('directory')
    await refused('read_file', { path: 'binary' }).toThrow('binary')
    await refused('write_file', { path: '/etc/x', content: '' }).toThrow('permission denied')
    await refused('search_files', { pattern: '(' }).toThrow(/^pattern: .*RE2/)
    await refused('search_files', { pattern: '((a{100}){100})' }).toThrow(/^pattern: /)
    await refused('apply_patch', { patch: 'x' }).toThrow('"*** Begin Patch"')
  })

  it('are searched with a large pattern, and changed by a patch of many hunks, in little time', async () => {
    const caller = newWorkspace()
    const lines = Array.from({ length: 10_000 }, (_, index) => index.toString(2).padStart(14, '0'))
    const content = lines.join('').replaceAll('0', 'a').replaceAll('1', 'b')
    await caller.call('write_file', { path: 'ab', content: `${content}\n`.repeat(8) })
    const pattern = '([ab]{1,150}){3}[k-z]'
    expect(await textOf(caller, 'search_files', { pattern })).toMatch(/^\[not all text was searched/)

    await caller.call('write_file', { path: 'many', content: 'a\n\n'.repeat(30_000) })
    const hunks = '@@\n-a\n+b\n'.repeat(30_000)
    const patch = `*** Begin Patch\n*** Update File: many\n${hunks}*** End Patch`
    expect(await textOf(caller, 'apply_patch', { patch })).toBe('updated /workspace/many')
    expect((await caller.shell('grep -c a many; sort -u many')).stdout).toBe('0\n\nb\n')
  })

  it('that are links to themselves, or behind them, are refused with that reason', async () => {
    const caller = newWorkspace()
    await caller.shell('ln -s self self; ln -s b a; ln -s a b; echo x > file')
    const refused = (name: string, arguments_: object) => expect(caller.call(name, arguments_)).rejects
    const reason = 'too many levels of symbolic links'
    for (const path of ['self', 'a', 'b/inside']) {
      await refused('read_file', { path }).toThrow(reason)
      await refused('list_files', { path }).toThrow(reason)
      await refused('search_files', { pattern: 'x', path }).toThrow(reason)
      await refused('write_file', { path, content: '' }).toThrow(reason)
      for (const change of [
        `Add File: ${path}\n+x`,
        `Delete File: ${path}/inside`,
        `Update File: ${path}\n@@\n-x\n+y`,
        `Update File: file\n*** Move to: ${path}\n@@\n-x\n+y`,
      ]) {
        const patch = `*** Begin Patch\n*** ${change}\n*** End Patch`
        await refused('apply_patch', { patch }).toThrow(reason)
      }
    }
    expect(await textOf(caller, 'list_files', {})).toBe(
      '/workspace/a -> (a link)\n/workspace/b -> (a link)\n/workspace/file 2\n/workspace/self -> (a link)',
    )
    expect(await textOf(caller, 'search_files', { pattern: 'x' })).toBe('/workspace/file:1: x')
  })

  it('that are links to themselves do not end the shell', async () => {
    const caller = newWorkspace()
    await caller.shell('ln -s self self; echo x > file')
    const commands = `cat self|cd self|echo x > self|echo x >> self|cat < self|. self|self/x|ls self|ls -L|ls -laR .|touch self|mkdir -p self/x
      cp self other|cp file self|cp -r . /tmp/copy|mv file self/x|ln self hard|ln -s x self/y|rm self/x|rmdir self|chmod 600 self|stat self
      stat -L self|readlink -f self|realpath self|find . -type f|find -L .|find self|test -e self|test -f self|grep -r x .|grep x self|rg x self
      sed -i s/x/y/ self|awk 1 self|sort self|wc self|head self|tail self|diff self file|gzip self|jq . self|tee self < file|split self|du -a|tree
      [ self -nt file ]|echo self/*|echo **/self|cd self/..|pushd self|mapfile a < self|source self|bash self|xargs -a self|file self|md5sum self`
    const each = commands.split(/[|\n]/).map((command) => command.trim())
    const outputs: ShellOutput[] = []
    for (let at = 0; at < each.length; at += 20) {
      const { members } = await caller.call('shell', { commands: each.slice(at, at + 20) })
      outputs.push(...(members.output as ShellOutput[]))
    }
    const failed = each.filter((_, index) => /shell failed/.test(outputs[index]?.stderr ?? 'none'))
    expect(failed).toEqual([])
    const patch = '*** Begin Patch\n*** Delete File: self\n*** End Patch'
    expect(await textOf(caller, 'apply_patch', { patch })).toBe('deleted /workspace/self')
    expect((await caller.shell('ls')).stdout).not.toContain('self')
  })

  it('do not move to paths that would be too deep', async () => {
    const caller = newWorkspace()
    const deep = (name: string) => Array.from({ length: 30 }, () => name).join('/')
    const moved = await caller.shell(
      `mkdir -p ${deep('a')} ${deep('b')}; mv a ${deep('b')}/a; mv a b/a; find . | wc -l`,
    )
    expect(moved.stderr).toContain('ENAMETOOLONG')
    expect((await caller.shell('find . | grep -c a; ls')).stdout).toBe('30\nb\n')
  })

  it('stay within their quotas, and a refused write leaves what was there', {
    timeout: 60_000,
  }, async () => {
    const caller = newWorkspace()
    const content = 'x'.repeat(1024 * 1024)
    await caller.call('write_file', { path: 'm', content })
    const made = await caller.shell(
      'for i in 1 2 3 4 5; do cat m m m >> big; done; for i in 1 2 3 4; do cp big big$i; done; ls -s',
    )
    expect(made.stderr).toContain('EDQUOT')
    const tooLarge = await caller.shell('cat m >> big; cat m >> big; wc -c < big')
    expect(tooLarge.stderr).toContain('EFBIG')
    expect(Number(tooLarge.stdout)).toBe(16 * 1024 * 1024)
    await expect(caller.call('write_file', { path: 'new', content: content.repeat(3) })).rejects.toThrow(
      'EDQUOT',
    )
    await caller.shell('rm big*')
    const many = await caller.shell('touch f{1..1990}; for i in $(seq 10); do : > g$i; done; ls | wc -l')
    expect(many.stderr).toContain('ENOSPC')
    // The folders /, /workspace and /tmp count.
    expect(Number(many.stdout)).toBe(1_997)
    expect((await caller.shell('rm f* g*; ls')).stdout).toBe('m\n')
  })
})

describe('a call that is repeated', () => {
  it('has one effect, and gets the first result', async () => {
    const caller = newWorkspace()
    const append = () => caller.call('shell', { commands: ['echo x >> log; wc -l < log'] }, 'call_1')
    const first = await append()
    expect(await append()).toEqual(first)
    const [third, fourth] = await Promise.all(
      ['call_2', 'call_2'].map((id) => caller.call('shell', { commands: ['sleep 0.2; echo x >> log'] }, id)),
    )
    expect(third).toEqual(fourth)
    expect((await caller.shell('wc -l < log')).stdout.trim()).toBe('2')
  })

  it('is repeated by the client when an answer is lost', async () => {
    let lost = 0
    const through = async (url: string, init: RequestInit) => {
      const answer = await fetch(url, init)
      if (lost++ === 0) throw new Error('connection lost')
      return answer
    }
    const caller = newWorkspace({ through })
    expect((await caller.shell('echo x >> log; wc -l < log')).stdout.trim()).toBe('1')
    expect(lost).toBe(2)
  })

  it('fails with that reason if no script of tools answers', async () => {
    const caller = workspaceCaller('http://127.0.0.1:9')
    await expect(caller.shell('true')).rejects.toThrow(/^The tool is not available now\.$/)
  })
})

it('never reads the files of another conversation, user or organization', async () => {
  const caller = newWorkspace()
  await caller.call('write_file', { path: 'secret.txt', content: 'canary-of-a-workspace' })
  const { organizationId, userId, workspaceId } = caller
  const owner = { organizationId, userId }
  const names = [
    newWorkspace(owner),
    newWorkspace({ userId, workspaceId }),
    newWorkspace({ organizationId, workspaceId }),
    newWorkspace({ ...owner, workspaceId: `${workspaceId}/../${workspaceId}` }),
    newWorkspace({ ...owner, workspaceId: `x/../${organizationId}:${userId}:${workspaceId}` }),
  ]
  for (const other of names) {
    expect(await textOf(other, 'list_files', {})).toBe('There are no files.')
    const { stdout } = await other.shell(
      'cat secret.txt ../*/*/secret.txt; grep -r canary / ; find /; echo $(</workspace/secret.txt)',
    )
    expect(stdout).not.toContain('canary')
  }
  expect(
    await textOf(newWorkspace({ ...owner, workspaceId }), 'read_file', { path: 'secret.txt' }),
  ).toContain('canary')
})
