import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { unusedUrl } from '../calls/stand-ins.ts'
import { newUser, ORGANIZATION, page, send, startInstallation, TOKEN } from './installation.ts'

const GROUPS = `/organizations/${ORGANIZATION}/groups`
const REFUSALS: Record<string, [status: number, headers?: Record<string, string>]> = {
  forbidden: [403],
  missing: [404],
  conflict: [409],
  unfit: [422],
  limited: [429, { 'retry-after': '7' }],
  failed: [500],
}

let installation: Awaited<ReturnType<typeof startInstallation>>
let refusal: keyof typeof REFUSALS = 'missing'
/** Refusals of a page of the list before it is answered. */
let limits = 0
const user = newUser()

beforeAll(async () => {
  installation = await startInstallation({
    [GROUPS]: ({ method, url }, outgoing) => {
      const [status, headers] = REFUSALS[refusal] ?? [500]
      if (method === 'POST') return send(outgoing, status, { message: 'Refused.' }, headers)
      if (limits-- > 0) return send(outgoing, 429, { message: 'Later.' }, { 'retry-after': '1' })
      if (url.searchParams.has('cursor')) return page([{ name: 'second' }])
      return { data: [{ name: 'first' }], has_more: true, next_cursor: 'next' }
    },
    '/models/acme/large': (_, outgoing) => void outgoing.writeHead(200).end('<html>'),
  })
})
afterAll(async () => {
  await installation.close()
  user.remove()
})

const headgate = (words: string, url = installation.url) =>
  user.headgate(words.split(' '), {
    environment: { HEADGATE_URL: url, ADMIN_TOKEN: TOKEN, HEADGATE_ORGANIZATION: ORGANIZATION },
  })

describe('errors', () => {
  it.each([
    ['forbidden', 'It needs the permission groups.change.'],
    ['missing', 'The list of its group shows what there is.'],
    ['conflict', 'It does not fit what there is now'],
    ['unfit', 'It does not fit what there is now'],
    ['limited', 'Repeat it in 7 seconds.'],
    ['failed', 'the log of the gateway has the reason'],
  ])('say what to do next: %s', async (kind, hint) => {
    refusal = kind
    const run = await headgate('groups create x')
    const [first, second] = run.errors.split('\n')
    expect(run).toMatchObject({ code: 1, output: '' })
    expect(first).toBe(`headgate: POST ${GROUPS}: ${REFUSALS[kind]?.[0]} Refused.`)
    expect(second).toContain(hint)
  })

  it('say what to do where nothing answers, and where something else does', async () => {
    const nothing = await headgate('models list', await unusedUrl())
    expect(nothing.errors).toMatch(/does not answer: ECONNREFUSED\nIs it running/)
    const other = await headgate('models show acme/large')
    expect(other).toMatchObject({ code: 1, errors: expect.stringContaining('is it a Headgate?') })
  })

  it('are none where a long list has to wait for a limit', async () => {
    limits = 1
    const run = await headgate('groups list --all --json')
    expect(run).toMatchObject({ code: 0, errors: '' })
    expect(JSON.parse(run.output)).toEqual([{ name: 'first' }, { name: 'second' }])
  })
})

describe('headgate api', () => {
  it('calls each endpoint by its name', async () => {
    const run = await headgate(`api call groups.list --set organizationId=${ORGANIZATION} --set cursor=x`)
    expect(run).toMatchObject({ code: 0, output: expect.stringContaining('name=second') })
    expect(installation.received.at(-1)?.url.search).toBe('?cursor=x')
  })

  it.each([
    ['api call nothing', 'there is no endpoint "nothing"'],
    ['api call groups.list', 'needs --set organizationId=<value>'],
    ['api call groups.list --set x', '--set takes name=value'],
  ])('%s', async (words, message) => {
    expect(await headgate(words)).toMatchObject({ code: 2, errors: expect.stringContaining(message) })
  })
})
