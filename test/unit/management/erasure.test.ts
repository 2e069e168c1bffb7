import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { advanceErasure, advanceErasures } from '../../../src/admin/erasure/erase-person.ts'
import { NangoStandIn } from '../../harness/nango.ts'
import { serve } from '../../harness/serve.ts'
import { configuration } from '../calls/fixtures.ts'
import { create, type Harness, seedOrganization, someAgent, startManagement, uniqueName } from './harness.ts'

const MINUTE_MS = 60_000

let harness: Harness
beforeAll(async () => {
  harness = await startManagement()
}, 60_000)
afterEach(() => {
  harness.ledgers.away = false
  harness.ledgers.onChange = () => {}
  vi.restoreAllMocks()
})
afterAll(() => harness.close())

const rows = async <Row extends Record<string, unknown>>(
  query: Parameters<typeof harness.database.execute>[0],
) => (await harness.database.execute<Row>(query)).rows

interface Subject {
  base: string
  organizationId: string
  userId: string
}

async function person(): Promise<Subject> {
  const { organization, base, user } = await seedOrganization(harness)
  return { base, organizationId: organization.id, userId: user.id }
}

const erase = ({ base, userId }: Subject) => harness.request('POST', `${base}/users/${userId}/erase`)
const openErasures = ({ userId }: Subject) =>
  rows<{ id: string }>(sql`SELECT id FROM erasures WHERE user_id = ${userId} AND finished_at IS NULL`)
const isDisabled = async ({ userId, organizationId }: Subject) =>
  (
    await rows(sql`SELECT 1 FROM memberships WHERE user_id = ${userId} AND organization_id = ${organizationId}
      AND disabled_at IS NOT NULL`)
  ).length === 1

/** An erasure that has begun, which nothing advances. */
async function begun(subject: Subject, minutesAgo = 0): Promise<string> {
  const { organizationId, userId } = subject
  const id = `erasure_${randomUUID()}`
  await harness.database.execute(sql`UPDATE memberships SET disabled_at = now() WHERE user_id = ${userId}`)
  await harness.database.execute(sql`INSERT INTO erasures (id, organization_id, user_id, requested_by, step, counts, created_at)
    VALUES (${id}, ${organizationId}, ${userId}, 'admin_token', 'connections', '{}', ${new Date(Date.now() - minutesAgo * MINUTE_MS).toISOString()})`)
  return id
}

interface Job {
  contentStore?: { remove(keys: readonly string[]): Promise<void> }
  /** Milliseconds from now. */
  after?: number
  settings?: Record<string, unknown>
}

const jobDeps = ({ contentStore = { remove: async () => {} }, after = 0, settings = {} }: Job = {}) =>
  ({
    database: harness.database,
    clock: () => Date.now() + after,
    ledgerOf: harness.ledgers.of,
    configuration: configuration(settings),
    contentStore,
    responseObject: () => ({
      remove: async () => true,
      cancel: async () => {},
      state: async () => null,
    }),
    workspaceOf: () => ({ run: async () => ({}) }),
    runQueue: null,
    waitUntil: () => {},
  }) as never

const advance = (id: string, job: Job = {}) => advanceErasure(jobDeps(job), id)

async function stateOf(id: string): Promise<Record<string, unknown>> {
  const [row] = await rows(
    sql`SELECT step, failure, counts, finished_at IS NOT NULL AS ended FROM erasures WHERE id = ${id}`,
  )
  return row ?? {}
}

/** A response in a conversation, with an item in the content store. */
async function storeResponse({ organizationId, userId }: Subject, conversationId: string): Promise<string> {
  const id = `resp_${randomUUID()}`
  for (const statement of [
    sql`INSERT INTO conversations (id, organization_id, user_id, created_at)
      VALUES (${conversationId}, ${organizationId}, ${userId}, now()) ON CONFLICT DO NOTHING`,
    sql`INSERT INTO responses (id, organization_id, user_id, key_id, conversation_id, model, status, policy_version, created_at)
      VALUES (${id}, ${organizationId}, ${userId}, 'k', ${conversationId}, 'm', 'completed', '1', now())`,
    sql`INSERT INTO response_items (id, organization_id, user_id, response_id, type, content_key, created_at)
      VALUES (${`item_${id}`}, ${organizationId}, ${userId}, ${id}, 'message', ${`items/${id}`}, now())`,
  ])
    await harness.database.execute(statement)
  return id
}

async function storeRun({ base, organizationId, userId }: Subject): Promise<string> {
  const agent = await create(harness, `${base}/agents`, someAgent(userId))
  const id = randomUUID()
  await harness.database.execute(sql`INSERT INTO runs (id, organization_id, user_id, agent_id, agent_version, conversation_id, origin,
      sealed_inputs, status, rev, step, attempt, created_at, deadline_at)
    VALUES (${id}, ${organizationId}, ${userId}, ${agent.id}, 1, 'c', 'api', '', 'in_progress', 1, 1, 1, now(), now())`)
  await harness.database.execute(sql`INSERT INTO run_steps (run_id, number, attempt, organization_id, status, response_id, created_at,
      deadline_at)
    VALUES (${id}, 1, 1, ${organizationId}, 'running', ${`resp_${id}`}, now(), now())`)
  return id
}

const leftOf = async ({ userId }: Subject) => {
  const [left] = await rows(sql`SELECT (SELECT count(*)::int FROM runs WHERE user_id = ${userId}) AS runs,
    (SELECT count(*)::int FROM responses WHERE user_id = ${userId}) AS responses,
    (SELECT count(*)::int FROM response_items WHERE user_id = ${userId}) AS items,
    (SELECT count(*)::int FROM conversations WHERE user_id = ${userId}) AS conversations`)
  return left
}
const NOTHING = { runs: 0, responses: 0, items: 0, conversations: 0 }

describe('a request to erase a person', () => {
  it('begins one erasure with another at the same time, and both answer with it', async () => {
    const subject = await person()
    const both = Promise.withResolvers<void>()
    let arrived = 0
    harness.ledgers.onChange = async ({ action }) => {
      if (action !== 'user.erasure_begun') return
      arrived += 1
      if (arrived === 2) both.resolve()
      await both.promise
    }
    const [one, other] = await Promise.all([erase(subject), erase(subject)])
    expect([one?.status, other?.status]).toEqual([202, 202])
    expect(one?.json.id).toBe(other?.json.id)
    expect(await openErasures(subject)).toEqual([{ id: one?.json.id }])
    const failed = harness.ledgers.changes.filter(
      ({ action, resource }) => action === 'change.failed' && resource === `users/${subject.userId}`,
    )
    expect(failed, 'the trail has the one that began nothing').toHaveLength(1)
  })

  it('begins none of a user that is enabled at the same time', async () => {
    const subject = await person()
    const enable = () =>
      harness.request('PUT', `${subject.base}/users/${subject.userId}`, { disabled: false })
    harness.ledgers.onChange = async ({ action }) => {
      if (action !== 'user.erasure_begun') return
      harness.ledgers.onChange = () => {}
      expect((await enable()).status).toBe(200)
    }
    expect((await erase(subject)).status).toBe(422)
    expect(await openErasures(subject)).toEqual([])
    expect(await isDisabled(subject)).toBe(false)
  })
})

describe('a user that is being erased', () => {
  it('is not enabled', async () => {
    const subject = await person()
    const { json } = await erase(subject)
    const answer = await harness.request('PUT', `${subject.base}/users/${subject.userId}`, {
      disabled: false,
      role: 'admin',
    })
    expect(answer.status).toBe(422)
    expect(answer.json.message).toContain(json.id)
    expect(await isDisabled(subject)).toBe(true)
    // Other changes do not enable it.
    const renamed = await harness.request('PUT', `${subject.base}/users/${subject.userId}`, { name: 'Ada' })
    expect([renamed.status, await isDisabled(subject)]).toEqual([200, true])
  })

  it('is not added again before the erasure has ended', async () => {
    const subject = await person()
    const [user] = await rows<{ email: string }>(sql`SELECT email FROM users WHERE id = ${subject.userId}`)
    await begun(subject)
    await harness.database.execute(sql`DELETE FROM memberships WHERE user_id = ${subject.userId}`)
    const add = () => harness.request('POST', `${subject.base}/users`, { email: user?.email, name: 'Person' })
    expect((await add()).json.message).toContain('being erased')
    await harness.database.execute(
      sql`UPDATE erasures SET finished_at = now() WHERE user_id = ${subject.userId}`,
    )
    expect((await add()).status).toBe(201)
  })
})

describe('the job of an erasure', () => {
  it('finds what was in flight when the person was disabled', async () => {
    const subject = await person()
    const conversationId = `conv_${randomUUID()}`
    await storeResponse(subject, conversationId)
    const id = await begun(subject)
    const removed: string[] = []
    const contentStore = { remove: async (keys: readonly string[]) => void removed.push(...keys) }
    expect(await advance(id, { contentStore })).toBe(false)
    expect(await stateOf(id)).toMatchObject({ step: 'wait', ended: false })
    const lateId = await storeResponse(subject, conversationId)
    await storeRun(subject)
    // The job of every five minutes comes before it is due.
    await advance(id, { contentStore, after: 5 * MINUTE_MS })
    expect(await stateOf(id)).toMatchObject({ step: 'wait', ended: false })
    await advance(id, { contentStore, after: 16 * MINUTE_MS })
    expect(await stateOf(id)).toMatchObject({
      ended: true,
      counts: { responses: 2, items: 2, stored_contents: 2, conversations: 2, runs: 1, membership: 1 },
    })
    expect(await leftOf(subject)).toEqual(NOTHING)
    expect(removed).toContain(`items/${lateId}`)
  })

  it('does not go on while a run is in progress that is not cancelled', async () => {
    const subject = await person()
    await storeRun(subject)
    const id = await begun(subject)
    // Every change of the run is lost, as when others change it all the time.
    await harness.database.execute(
      sql`CREATE FUNCTION lose_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
    )
    await harness.database.execute(
      sql`CREATE TRIGGER lose_change BEFORE UPDATE ON runs FOR EACH ROW EXECUTE FUNCTION lose_change()`,
    )
    try {
      await advance(id)
      expect(await stateOf(id)).toMatchObject({ step: 'runs', failure: 'RunsInProgressError' })
    } finally {
      await harness.database.execute(sql`DROP FUNCTION lose_change CASCADE`)
    }
    await advance(id)
    expect(await stateOf(id)).toMatchObject({ step: 'wait', failure: null, counts: { runs: 1 } })
    expect(await leftOf(subject)).toMatchObject({ runs: 0 })
  })

  it('does not end at a step of another version', async () => {
    const id = await begun(await person())
    await harness.database.execute(sql`UPDATE erasures SET step = 'of_later' WHERE id = ${id}`)
    await advance(id)
    expect(await stateOf(id)).toMatchObject({ step: 'of_later', failure: 'UnknownStepError', ended: false })
  })

  it('repeats the step of runs when their cancellation cannot be recorded', async () => {
    const subject = await person()
    await storeRun(subject)
    const id = await begun(subject)
    harness.ledgers.away = true
    await advance(id)
    expect(await stateOf(id)).toMatchObject({ step: 'runs', failure: 'ApiError' })
    harness.ledgers.away = false
    await advance(id)
    expect(await leftOf(subject)).toMatchObject({ runs: 0 })
  })

  it('logs the kind of a failure, without what its text quotes', async () => {
    const subject = await person()
    await storeResponse(subject, `conv_${uniqueName('c')}`)
    const id = await begun(subject)
    const lines: string[] = []
    vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(String(line)))
    const remove = async () => {
      throw new RangeError('no place for "Dear Ada Lovelace"')
    }
    await advance(id, { contentStore: { remove } })
    expect(lines.join()).toContain('"erasure_failed"')
    expect(lines.join()).toContain('RangeError')
    expect(lines.join()).not.toContain('Ada')
    // The rows are gone, and the next attempt erases their content.
    const removed: string[] = []
    await advance(id, { contentStore: { remove: async (keys) => void removed.push(...keys) } })
    expect(removed).toHaveLength(1)
  })
})

describe('the job of erasures', () => {
  it('comes to an erasure behind more than it takes that keep failing', async () => {
    const failing = []
    for (let made = 0; made < 25; made += 1) failing.push(await begun(await person(), 60 + made))
    await harness.database.execute(
      sql`UPDATE erasures SET step = 'of_later' WHERE id = ANY(ARRAY[${sql.join(failing, sql`, `)}])`,
    )
    const id = await begun(await person())
    vi.spyOn(console, 'error').mockImplementation(() => {})
    for (let minutes = 0; minutes < 30; minutes += 5)
      await advanceErasures(jobDeps({ after: minutes * MINUTE_MS }))
    expect(await stateOf(id)).toMatchObject({ ended: true })
    // Those that fail were all tried.
    const tried =
      await rows(sql`SELECT 1 FROM erasures WHERE failure = 'UnknownStepError' AND step = 'of_later'
      AND id = ANY(ARRAY[${sql.join(failing, sql`, `)}])`)
    expect(tried).toHaveLength(25)
  })
})

describe('connections at a hosted broker', () => {
  let nango: NangoStandIn
  let settings: Record<string, unknown>
  beforeAll(async () => {
    const { standIn, host, close } = await serve((origin) => new NangoStandIn(origin))
    nango = standIn
    settings = { NANGO_SECRET_KEY: nango.key, NANGO_URL: nango.origin, EGRESS_ALLOW: host }
    return close
  })

  /** A person with content, an account at the broker, and a credential in the vault. */
  async function connected(): Promise<Subject & { accounts: string[] }> {
    const subject = await person()
    const { base, userId } = subject
    const integration = await create(harness, `${base}/integrations`, {
      slug: uniqueName('tickets'),
      display_name: 'Tickets',
      kind: 'mcp',
      url: 'https://tickets.example/mcp',
      authorization: { kind: 'bearer' },
    })
    const make = (more: object) =>
      create(harness, `${base}/connections`, {
        ...{ integration: integration.slug, display_name: 'Ada at home', user_id: userId, ...more },
      })
    await make({ credential: { secret: 'a-secret-of-the-vault' } })
    const accounts = [uniqueName('account'), uniqueName('account')]
    for (const account of accounts) {
      const { id } = await make({ broker: 'nango' })
      await harness.database.execute(
        sql`UPDATE connections SET upstream_connection_id = ${account}, status = 'active' WHERE id = ${id}`,
      )
    }
    await storeResponse(subject, `conv_${randomUUID()}`)
    return { ...subject, accounts }
  }

  const connectionsOf = ({ userId }: Subject) =>
    rows<{ broker: string }>(sql`SELECT broker FROM connections WHERE owner_user_id = ${userId}`)
  const nameOf = async ({ userId }: Subject) =>
    (await rows<{ name: string }>(sql`SELECT name FROM users WHERE id = ${userId}`))[0]?.name

  it('do not keep content and person while the broker is away, and go when it is back', async () => {
    const subject = await connected()
    const id = await begun(subject, 20)
    nango.fault = new Response('away', { status: 503 })
    const lines: string[] = []
    vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(String(line)))
    await advance(id, { settings })
    nango.fault = null
    expect(lines).toEqual([expect.stringContaining('"step":"hosted_connections"')])
    expect(await stateOf(id)).toMatchObject({
      step: 'hosted_connections',
      failure: 'BrokerAwayError',
      ended: false,
    })
    expect([await leftOf(subject), await nameOf(subject)]).toEqual([NOTHING, 'Erased user'])
    // Their rows stay until the broker has been told.
    expect(await connectionsOf(subject)).toEqual([{ broker: 'nango' }, { broker: 'nango' }])

    nango.requests.length = 0
    await advance(id, { settings })
    expect(await stateOf(id)).toMatchObject({
      ended: true,
      failure: null,
      counts: { connections: 3, connections_left: 0, membership: 1 },
    })
    expect(nango.requests.map((request) => request.split('?')[0]).sort()).toEqual(
      subject.accounts.map((account) => `DELETE /connections/${account}`).sort(),
    )
    expect(await connectionsOf(subject)).toEqual([])
  })

  it('are counted as left there without a key for the broker', async () => {
    const subject = await connected()
    const id = await begun(subject, 20)
    await advance(id)
    expect(await stateOf(id)).toMatchObject({
      ended: true,
      counts: { connections: 3, connections_left: 2, responses: 1, person: 1 },
    })
    expect(await connectionsOf(subject)).toEqual([])
    const left = harness.ledgers.changes.flatMap(({ action, detail }) =>
      action === 'connection.deleted' && detail?.left_at_broker ? [detail.left_at_broker] : [],
    )
    expect(left).toEqual(expect.arrayContaining(subject.accounts))
  })

  it('are removed beside one that the broker does not delete, and counted once', async () => {
    const subject = await connected()
    const [stuck] = subject.accounts
    const id = await begun(subject, 20)
    nango.refused = stuck
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await advance(id, { settings })
    expect(await stateOf(id)).toMatchObject({ failure: 'BrokerAwayError', counts: { connections: 2 } })
    expect(await connectionsOf(subject)).toHaveLength(1)
    nango.refused = undefined
    await advance(id, { settings })
    expect(await stateOf(id)).toMatchObject({ ended: true, counts: { connections: 3 } })
  })

  it('do not keep an erasure that an earlier version began', async () => {
    const subject = await connected()
    const id = await begun(subject, 20)
    await harness.database.execute(sql`UPDATE erasures SET step = 'late_connections' WHERE id = ${id}`)
    await advance(id)
    expect(await stateOf(id)).toMatchObject({ ended: true, counts: { connections: 3 } })
    expect(await leftOf(subject)).toEqual(NOTHING)
  })

  it('can be deleted by the API without a key for the broker, which says what stays there', async () => {
    const subject = await connected()
    const { base, accounts } = subject
    const { json } = await harness.request('GET', `${base}/connections?user_id=${subject.userId}`)
    const answers = []
    for (const { id } of json.data) answers.push(await harness.request('DELETE', `${base}/connections/${id}`))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(answers.map((answer) => answer.json.left_at_broker).sort()).toEqual([...accounts, null].sort())
    expect(await connectionsOf(subject)).toEqual([])
  })
})
