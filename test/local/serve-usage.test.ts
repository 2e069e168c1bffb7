import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const SCRIPTS = join(import.meta.dirname, '../../scripts')

/** Runs a script without any setting. */
const run = (name: string, ...words: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(SCRIPTS, `${name}.ts`), ...words], {
    env: { PATH: process.env.PATH },
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

describe.each([
  ['serve', '--tools', []],
  ['backup', '--to <folder>', ['--to is not given']],
  ['restore', '--from <folder>', ['--from is not given']],
])('npm run %s', (name, option, [missing]) => {
  it('has a usage text', () => {
    const help = run(name, '--help')
    expect(help).toMatchObject({ status: 0, stderr: '' })
    expect(help.stdout).toMatch(new RegExp(`^usage: npm run ${name} `))
    expect(help.stdout).toContain(`  ${option}  `)
    expect(run(name, '-h')).toEqual(help)
  })

  it('names a wrong option, with the usage', () => {
    const { stdout: usage } = run(name, '--help')
    expect(run(name, '--nonsense')).toEqual({
      status: 2,
      stdout: '',
      stderr: `Unknown option '--nonsense'\n\n${usage}`,
    })
    expect(run(name, 'word').stderr).toContain("Unexpected argument 'word'")
    if (missing !== undefined)
      expect(run(name)).toEqual({ status: 2, stdout: '', stderr: `${missing}\n\n${usage}` })
  })
})
