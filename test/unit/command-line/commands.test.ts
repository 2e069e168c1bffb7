import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ADMINISTRATION } from '../../../scripts/admin/commands/all.ts'
import { newUser } from './installation.ts'

const user = newUser()
const help = async (...words: string[]) => (await user.headgate([...words, '--help'])).output

describe('the commands', () => {
  it('have the text, the arguments and the members of their endpoints', async () => {
    const create = await help('keys', 'create')
    expect(create).toContain('Create an API key; the answer is the only one that holds it.')
    expect(create).toContain('Usage: headgate keys create <user> [--options]')
    expect(create).toMatch(/--label <text> +what it is for \(required\)/)
    expect(create).toMatch(/--scope <scope> .*: models, agents or mcp \(may be repeated\)/)
    expect(create).toMatch(/--compatibility <form> .*: headgate or open-responses \(headgate\)/)
    expect(await help('users', 'update')).toMatch(
      /--rate-limit <number> +calls a minute of this user, or none/,
    )
    expect(await help('users', 'create')).toMatch(/--kind <kind> .*: person or service \(person\)/)
    expect(await help('connections', 'share')).toMatch(/--group <group> .*\(required\)/)
  })

  it('have a line each in the help, which is a sentence of a command', async () => {
    const overall = await user.headgate(['--help'])
    for (const { group, verb, summary } of ADMINISTRATION) {
      expect(overall.output).toContain(`  ${group} ${verb}`)
      expect(summary, `${group} ${verb}`).toMatch(/^[A-Z][a-z]+ .*[^.]$/)
      expect(summary, `${group} ${verb}`).not.toMatch(/^[A-Z][a-z]+s /)
    }
  })

  it('take --json and --help, each', async () => {
    for (const { group, verb } of ADMINISTRATION) expect(await help(group, verb)).toContain('--json')
  })

  it('are those that the documents name', async () => {
    const documents = ['administration', 'api', 'connections', 'integrations', 'policies', 'agents']
    const text = documents
      .map((name) => readFileSync(join(import.meta.dirname, `../../../docs/${name}.md`), 'utf8'))
      .join('\n')
    const named = [
      ...text.matchAll(/(?:run (?:--silent )?admin --|^headgate|`headgate) ([a-z-]+) ([a-z-]+)/gm),
    ]
    expect(named.length).toBeGreaterThan(30)
    const known = new Set(ADMINISTRATION.map(({ group, verb }) => `${group} ${verb}`))
    const own = new Set(['login', 'logout', 'whoami', 'profiles', 'completion'])
    const unknown = named.filter(
      ([, group = '', verb = '']) => !own.has(group) && !known.has(`${group} ${verb}`),
    )
    expect(unknown.map(([line]) => line)).toEqual([])
  })
})
