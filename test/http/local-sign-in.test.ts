import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { organizationId, userId } from '../../scripts/demo-organizations.ts'
import { ConsoleBrowser, SESSION_COOKIE, signedInBrowser } from '../harness/console-browser.ts'
import { gateway } from '../harness/gateway.ts'
import { type Answer, jsonOf } from '../harness/send.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { administrator } from '../harness/tenant.ts'

const TOKEN = 'start-token-of-this-test-0123456789abcdef'
const OWNER = { organization_id: organizationId('acme'), user_id: userId('owner') }
const OTHER = { organization_id: organizationId('other'), user_id: userId('other_org') }
const pair = (member: typeof OWNER) => `${member.organization_id}/${member.user_id}`

let address: StartedGateway
beforeAll(async () => {
  const variables = { LOCAL_SIGN_IN: [TOKEN, pair(OWNER), pair(OTHER)].join(',') }
  address = await startGateway({ bundleDirectory: inject('bundleDirectory'), variables, isBrief: true })
}, 60_000)
afterAll(() => address?.stop())

const codeOf = (answer: Answer) => [
  answer.status,
  (jsonOf(answer).details as { code?: string } | undefined)?.code,
]

it('signs in once, as the first member, which becomes the others', async () => {
  const visitor = new ConsoleBrowser(address)
  expect(codeOf(await visitor.call('POST', '/sign-in/local', { token: `${TOKEN}x` }))).toEqual([
    401,
    'start_token_unusable',
  ])
  // Other names of this machine, and of others: a page of a name that leads here has no way in.
  const { port } = new URL(address.baseUrl)
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    'localhost:1',
    `localhost.evil.example:${port}`,
  ]) {
    const headers = { ...visitor.headers(), host }
    expect(codeOf(await visitor.call('POST', '/sign-in/local', { token: TOKEN }, headers)), host).toEqual([
      403,
      'not_local',
    ])
  }
  const foreign = { ...visitor.headers(), 'sec-fetch-site': 'cross-site' }
  expect((await visitor.call('POST', '/sign-in/local', { token: TOKEN }, foreign)).status).toBe(403)

  const browsers = [new ConsoleBrowser(address), new ConsoleBrowser(address)]
  const answers = await Promise.all(
    browsers.map((each) =>
      each.call('POST', '/sign-in/local', { token: TOKEN }, { ...each.headers(), host: `localhost:${port}` }),
    ),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
  const browser = browsers.find(({ cookies }) => cookies.has(SESSION_COOKIE)) as ConsoleBrowser
  expect(await browser.ask('GET', '/me')).toMatchObject({ user: { id: OWNER.user_id }, role: 'owner' })
  const { data } = await browser.ask<{ data: object[] }>('GET', '/me/local-members')
  expect(data).toMatchObject([
    { user: { id: OWNER.user_id }, organization: { slug: 'acme' }, is_current: true },
    { user: { id: OTHER.user_id }, organization: { slug: 'other' }, role: 'member', is_current: false },
  ])

  const before = browser.cookies.get(SESSION_COOKIE) ?? ''
  const unlisted = { ...OWNER, user_id: userId('member') }
  expect((await browser.call('POST', '/me/local-members/switch', unlisted)).status).toBe(404)
  expect(await browser.ask('POST', '/me/local-members/switch', OTHER)).toMatchObject({
    user: { id: OTHER.user_id },
  })
  expect(await browser.ask('GET', '/me')).toMatchObject({ organization: { slug: 'other' } })
  const ended = new ConsoleBrowser(address)
  ended.cookies.set(SESSION_COOKIE, before)
  expect((await ended.call('GET', '/me')).status).toBe(401)
})

it('is for sessions of the start token alone', async () => {
  const base = `/organizations/${OTHER.organization_id}`
  const user = { email: `${crypto.randomUUID()}@example.com`, name: 'Ada' }
  const { id } = await administrator(address).ask<{ id: string }>('POST', `${base}/users`, user)
  const browser = await signedInBrowser(address, base, id)
  expect(codeOf(await browser.call('GET', '/me/local-members'))).toEqual([403, 'not_local'])
  expect(codeOf(await browser.call('POST', '/me/local-members/switch', OWNER))).toEqual([403, 'not_local'])
})

it('is not there without the variable', async () => {
  const answer = await new ConsoleBrowser(gateway()).call('POST', '/sign-in/local', { token: TOKEN })
  expect(answer.status).toBe(404)
})

it('is refused where BASE_URL is not on loopback: nothing is served', async () => {
  await address.restartWorkerd({ BASE_URL: 'https://gateway.example.com' })
  for (const path of ['/sign-in/local', '/setup']) {
    const answer = await new ConsoleBrowser(address).call('POST', path, { token: TOKEN })
    expect(answer.status).toBe(500)
  }
})
