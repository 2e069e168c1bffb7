import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newUser, ORGANIZATION, startInstallation, TOKEN } from './installation.ts'

let installation: Awaited<ReturnType<typeof startInstallation>>
let user: ReturnType<typeof newUser>

beforeAll(async () => {
  installation = await startInstallation({
    [`/organizations/${ORGANIZATION}`]: () => ({ id: ORGANIZATION, slug: 'acme' }),
    [`/organizations/${ORGANIZATION}/groups`]: () => ({
      data: [{ name: 'research' }],
      has_more: false,
      next_cursor: null,
    }),
  })
})
afterAll(() => installation.close())
beforeEach(() => {
  user = newUser()
})
afterEach(() => user.remove())

const signIn = (...more: string[]) =>
  user.headgate(['login', '--url', installation.url, '--token-stdin', ...more], { input: `${TOKEN}\n` })

describe('headgate login', () => {
  it('stores the token in a file that only its owner can read, and prints it nowhere', async () => {
    const run = await signIn('--organization', 'acme')
    expect(run.code).toBe(0)
    expect(run.output + run.errors).not.toContain(TOKEN)
    if (process.platform !== 'win32') {
      expect(statSync(user.file).mode & 0o777).toBe(0o600)
      expect(statSync(dirname(user.file)).mode & 0o777).toBe(0o700)
    }
    const groups = await user.headgate(['groups', 'list', '--json'])
    expect(JSON.parse(groups.output)).toEqual([{ name: 'research' }])
  })

  it('narrows the mode of a file that others could read', async () => {
    await signIn()
    writeFileSync(`${user.file}.old`, '')
    expect((await signIn('--profile', 'other')).code).toBe(0)
    if (process.platform !== 'win32') expect(statSync(user.file).mode & 0o077).toBe(0)
  })

  it('asks for what is not given', async () => {
    const run = await user.headgate(['login'], { answers: [`${installation.url}/`, TOKEN] })
    expect(run.code).toBe(0)
    expect(JSON.parse(readFileSync(user.file, 'utf8')).profiles.default).toEqual({
      url: installation.url,
      token: TOKEN,
    })
  })

  it('takes the token of the environment', async () => {
    const environment = { HEADGATE_URL: installation.url, ADMIN_TOKEN: TOKEN }
    expect((await user.headgate(['login'], { environment })).code).toBe(0)
  })

  it('has no option for a token, which a list of processes would show', async () => {
    const run = await user.headgate(['login', '--url', installation.url, '--token', TOKEN])
    expect(run).toMatchObject({ code: 2, output: '' })
    expect(existsSync(user.file)).toBe(false)
  })

  it.each<[name: string, words: string[], input: string, code: number, message: string]>([
    ['a token that is refused', ['--token-stdin'], 'hga_wrong', 1, 'Nothing was stored'],
    ['an unknown organization', ['--token-stdin', '--organization', 'x'], TOKEN, 1, 'no organization has'],
    ['no token', ['--token-stdin'], '\n', 2, 'there was no token'],
    ['a token of two lines', ['--token-stdin'], 'a\nb', 2, 'not one line'],
    ['nothing that could be asked', [], '', 2, '--token-stdin reads it'],
    ['a name with a slash', ['--token-stdin', '--profile', '../x'], TOKEN, 2, 'a profile is named by'],
  ])('stores nothing for %s', async (_, words, input, code, message) => {
    const run = await user.headgate(['login', '--url', installation.url, ...words], { input })
    expect(run).toMatchObject({ code, errors: expect.stringContaining(message) })
    expect(run.errors).not.toContain('hga_wrong')
    expect(existsSync(user.file)).toBe(false)
  })

  it('sends no token unencrypted to another machine', async () => {
    const url = 'http://gateway.example.com'
    const run = await user.headgate(['login', '--url', url, '--token-stdin'], { input: TOKEN })
    expect(run).toMatchObject({ code: 1, errors: expect.stringContaining('must be https') })
  })
})

describe('profiles', () => {
  it('are listed, selected and removed, without their tokens', async () => {
    await signIn()
    await signIn('--profile', 'second')
    const listed = await user.headgate(['profiles', 'list', '--json'])
    expect(JSON.parse(listed.output)).toMatchObject([
      { profile: 'default', current: false },
      { profile: 'second', current: true },
    ])
    expect(listed.output).not.toContain(TOKEN)
    await user.headgate(['profiles', 'use', 'default'])
    const whoami = await user.headgate(['whoami', '--json'])
    expect(JSON.parse(whoami.output)).toMatchObject({ profile: 'default', url: installation.url })
    const second = await user.headgate(['whoami', '--json', '--profile', 'second'])
    expect(JSON.parse(second.output)).toMatchObject({ profile: 'second' })
    await user.headgate(['logout', '--profile', 'second'])
    await user.headgate(['logout'])
    expect(readFileSync(user.file, 'utf8')).not.toContain(TOKEN)
    const gone = await user.headgate(['whoami'])
    expect(gone).toMatchObject({ code: 1, errors: expect.stringContaining('headgate login') })
  })

  it('do not take the place of an installation that the environment names', async () => {
    await signIn()
    const elsewhere = { HEADGATE_URL: 'https://elsewhere.example.com' }
    const run = await user.headgate(['whoami'], { environment: elsewhere })
    expect(run).toMatchObject({ code: 1, errors: expect.stringContaining('login --url https://elsewhere') })
    const same = await user.headgate(['whoami'], { environment: { HEADGATE_URL: installation.url } })
    expect(same.code).toBe(0)
  })

  it('that are damaged give an error without their content', async () => {
    await signIn()
    writeFileSync(user.file, `{"current":"default","profiles":{"default":{"token":"${TOKEN}"`)
    const run = await user.headgate(['whoami'])
    expect(run).toMatchObject({ code: 1, errors: expect.stringContaining('is damaged') })
    expect(run.errors).not.toContain(TOKEN)
  })

  it('with a token that is no longer taken say how to sign in again', async () => {
    await signIn()
    writeFileSync(user.file, readFileSync(user.file, 'utf8').replace(TOKEN, 'hga_old'))
    const run = await user.headgate(['organizations', 'list'])
    expect(run.code).toBe(1)
    expect(run.errors).toContain(`headgate login --profile default --url ${installation.url}`)
  })
})
