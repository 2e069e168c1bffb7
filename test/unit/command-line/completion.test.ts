import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ADMINISTRATION } from '../../../scripts/admin/commands/all.ts'
import { newUser } from './installation.ts'

const folder = mkdtempSync(join(tmpdir(), 'headgate-completion-'))
const user = newUser()
afterAll(() => {
  rmSync(folder, { recursive: true })
  user.remove()
})

const scriptOf = (shell: string) => join(folder, `completion.${shell}`)
beforeAll(async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    writeFileSync(scriptOf(shell), (await user.headgate(['completion', shell])).output)
  }
  writeFileSync(join(folder, 'policy.json'), '{}')
})

const has = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status === 0

/** What Tab offers at the end of each line, in the shell itself. */
const SHELLS: Record<string, (lines: string[]) => string[][]> = {
  bash: (lines) =>
    output(
      'bash',
      `source ${scriptOf('bash')}
       while IFS= read -r line; do
         COMP_WORDS=($line); [[ $line == *' ' ]] && COMP_WORDS+=('')
         COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _headgate; echo "\${COMPREPLY[*]}"
       done`,
      lines,
    ).map((line) => line.split(' ').filter(Boolean)),
  fish: (lines) =>
    output(
      'fish',
      `source ${scriptOf('fish')}; while read -l line; echo (complete -C $line | string split -f1 \\t); end`,
      lines,
    ).map((line) => line.split(' ').filter(Boolean)),
}

function output(shell: string, script: string, lines: string[]): string[] {
  const run = spawnSync(shell, ['-c', script], {
    cwd: folder,
    input: `${lines.join('\n')}\n`,
    encoding: 'utf8',
    env: { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder },
  })
  expect(run.stderr).toBe('')
  return run.stdout.split('\n').slice(0, lines.length)
}

const verbsOf = (group: string) =>
  ADMINISTRATION.filter((command) => command.group === group).map(({ verb }) => verb)

describe.each(Object.entries(SHELLS))('completion in %s', (shell, offered) => {
  it.skipIf(!has(shell))('offers groups, verbs, options, values and files', () => {
    const [groups, verbs, option, values, shells, single, file] = offered([
      'headgate ke',
      'headgate keys ',
      'headgate keys create --lab',
      'headgate keys create --compatibility ',
      'headgate completion z',
      'headgate login --ur',
      'headgate tools set --file pol',
    ])
    expect(groups).toEqual(['keys'])
    expect(verbs?.toSorted()).toEqual(verbsOf('keys').toSorted())
    expect(option).toEqual(['--label'])
    expect(values?.toSorted()).toEqual(['headgate', 'open-responses'])
    expect(shells).toEqual(['zsh'])
    expect(single).toEqual(['--url'])
    expect(file).toEqual(['policy.json'])
  })

  it.skipIf(!has(shell))('offers each command', () => {
    const groups = [...new Set(ADMINISTRATION.map(({ group }) => group))]
    const lists = offered(groups.map((group) => `headgate ${group} `))
    expect(lists.map((verbs) => verbs.toSorted())).toEqual(groups.map((group) => verbsOf(group).toSorted()))
  })
})

describe('completion in zsh', () => {
  it.skipIf(!has('zsh'))('defines its function after compinit', () => {
    const script = `autoload -U compinit; compinit -D; source ${scriptOf('zsh')}; print $_comps[headgate]`
    const run = spawnSync('zsh', ['-fc', script], { encoding: 'utf8', env: { ...process.env, HOME: folder } })
    expect(run).toMatchObject({ stdout: '_headgate\n', stderr: '' })
  })
})

it('is for known shells', async () => {
  expect(await user.headgate(['completion', 'tcsh'])).toMatchObject({
    code: 2,
    errors: expect.stringContaining('bash, zsh, fish'),
  })
})
