import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { readCrons } from '../../scripts/node/wrangler-settings.ts'
import { createConnection, createUnreadIntegration } from '../harness/connections.ts'
import { query } from '../harness/gateway.ts'
import { type StartedGateway, startGateway, WRANGLER_FILE } from '../harness/start-gateway.ts'
import { administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { workspaceCaller } from '../harness/workspaces.ts'
import { ask, createResponse } from './support/response-calls.ts'

// What the sweep of retention removes besides records. A system of its own: the sweep removes rows of every organization.

const DAYS = 20
const HOURLY = readCrons(WRANGLER_FILE).find((cron) => !cron.startsWith('*/')) ?? ''

let address: StartedGateway
beforeAll(async () => {
  const variables = { RESPONSE_WINDOW_MS: '1', REJECTED_CALL_RETENTION_DAYS: String(DAYS) }
  address = await startGateway({ bundleDirectory: inject('bundleDirectory'), variables, isBrief: true })
}, 60_000)
afterAll(() => address.stop())

const sql = (text: string, parameters: unknown[] = []) => query(address, text, parameters)
const keep = ({ base }: Tenant, settings: Record<string, number>) =>
  administrator(address).ask('PUT', `${base}/retention`, settings)

/** The jobs of the hour, some hours after the last ones. */
async function sweep(): Promise<void> {
  await sql(
    `UPDATE organizations SET retention_swept_at = retention_swept_at - interval '2 days',
      conversation_search = conversation_search || jsonb_build_object('begunAt', (conversation_search->>'begunAt')::bigint - 172800000)`,
  )
  await address.workerd.runScheduled(HOURLY)
}

interface Made {
  tenant: Tenant
  responseId: string
  conversationId: string
  /** In the body of an item, which the content store has. */
  marker: string
}

/** A response that the content store has an item of, in a conversation with a file. */
async function respond(tenant: Tenant, more: Record<string, unknown> = {}): Promise<Made> {
  const marker = randomUUID()
  const input = `${marker} ${'A private text of more than a megabyte. '.repeat(30_000)}`
  const { id, conversation } = await createResponse(tenant.key, { input, ...more }, address)
  const made = { tenant, responseId: id, conversationId: conversation?.id ?? '', marker }
  await files(made).call('write_file', { path: 'notes.txt', content: 'private notes' })
  return made
}

const files = ({ tenant: { organizationId, userId }, conversationId: workspaceId }: Made) =>
  workspaceCaller(address.toolsUrl, { organizationId, userId, workspaceId })

const makeOld = async (table: string, id: string, days: number) => {
  const [row] = await sql(
    `UPDATE ${table} SET created_at = now() - ${days} * interval '1 day' WHERE id = $1 RETURNING id`,
    [id],
  )
  expect(row).toBeDefined()
}

const statusOf = async ({ tenant }: Made, path: string) =>
  (await ask(tenant.key, 'GET', `/v1/${path}`, { baseUrl: address.baseUrl })).status

/** What there is of a response and its conversation. */
async function leftOf(made: Made) {
  const { responseId, conversationId, marker } = made
  const count = async (table: string, column: string, id: string) =>
    Number((await sql(`SELECT count(*) AS n FROM ${table} WHERE ${column} = $1`, [id]))[0]?.n)
  const listed = await files(made)
    .call('list_files', {})
    .catch(() => null)
  return {
    response: await statusOf(made, `responses/${responseId}`),
    items: (await count('response_items', 'response_id', responseId)) > 0,
    conversation: await statusOf(made, `conversations/${conversationId}/items`),
    conversations: await count('conversations', 'id', conversationId),
    content: isStored(marker),
    files: JSON.stringify(listed).includes('notes.txt'),
  }
}

/** Whether the content store has a file with a text. */
function isStored(marker: string): boolean {
  const folder = join(dirname(address.logFolder), 'content')
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.some(
    (entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(marker),
  )
}

const ALL = { response: 200, items: true, conversation: 200, conversations: 1, content: true, files: true }
const NOTHING = {
  response: 404,
  items: false,
  conversation: 404,
  conversations: 0,
  content: false,
  files: false,
}

describe('the retention of responses', () => {
  it('removes old ones with their items, content, empty conversations and files, and nothing else', async () => {
    const [tenant, other] = [await createTenant(address), await createTenant(address)]
    const old = await respond(tenant)
    const young = await respond(tenant)
    const ofOther = await respond(other)
    const first = await respond(tenant)
    const later = await respond(tenant, { conversation: first.conversationId })
    for (const { responseId, conversationId } of [old, ofOther, first]) {
      await makeOld('responses', responseId, DAYS + 1)
      await makeOld('conversations', conversationId, DAYS + 1)
    }
    await makeOld('responses', young.responseId, DAYS - 1)
    expect(await leftOf(old)).toEqual(ALL)
    await keep(tenant, { responses: DAYS })
    await sweep()
    // Content that no row names is erased by the next run.
    await sweep()

    expect(await leftOf(old)).toEqual(NOTHING)
    expect(await leftOf(young)).toEqual(ALL)
    expect(await leftOf(ofOther)).toEqual(ALL)
    // A conversation that goes on loses what is old.
    expect(await leftOf(first)).toEqual({ ...ALL, response: 404, items: false, content: false })
    expect(await leftOf(later)).toEqual(ALL)
    expect((await createResponse(tenant.key, { conversation: first.conversationId }, address)).status).toBe(
      'completed',
    )
  })

  it('removes old conversations whose last response was deleted by its user', async () => {
    const tenant = await createTenant(address)
    const [old, young, used] = [await respond(tenant), await respond(tenant), await respond(tenant)]
    for (const { responseId } of [old, young]) {
      const path = `/v1/responses/${responseId}`
      expect((await ask(tenant.key, 'DELETE', path, { baseUrl: address.baseUrl })).status).toBe(200)
    }
    await makeOld('conversations', old.conversationId, DAYS + 1)
    await makeOld('conversations', used.conversationId, DAYS + 1)
    await keep(tenant, { responses: DAYS })
    await sweep()
    expect((await leftOf(old)).conversations).toBe(0)
    expect(await statusOf(old, `conversations/${old.conversationId}/items`)).toBe(404)
    expect((await leftOf(young)).conversations).toBe(1)
    expect(await leftOf(used)).toEqual(ALL)
  })

  it('keeps responses for ever where they have no retention', async () => {
    const tenant = await createTenant(address)
    const made = await respond(tenant)
    await makeOld('responses', made.responseId, 4_000)
    await makeOld('conversations', made.conversationId, 4_000)
    await sweep()
    await sweep()
    expect(await leftOf(made)).toEqual(ALL)
  })
})

it('attempts to connect an account go after their retention, of the organization alone', async () => {
  const connect = async () => {
    const tenant = await createTenant(address, { credits: 0, models: [] })
    const integration = await createUnreadIntegration(address, tenant)
    const { id } = await createConnection(address, tenant, integration)
    for (const days of [DAYS - 1, DAYS + 1, 4_000]) {
      await sql(
        `INSERT INTO connect_sessions (id, organization_id, connection_id, user_id, status, expires_at, created_at)
          VALUES ($1, $2, $3, $4, 'expired', now(), now() - ${days} * interval '1 day')`,
        [randomUUID(), tenant.organizationId, id, tenant.userId],
      )
    }
    const left = async () =>
      (await sql('SELECT 1 FROM connect_sessions WHERE organization_id = $1', [tenant.organizationId])).length
    return { tenant, left }
  }
  const [one, other] = [await connect(), await connect()]
  await keep(one.tenant, { connect_sessions: DAYS })
  await keep(other.tenant, { connect_sessions: 0 })
  await sweep()
  expect([await one.left(), await other.left()]).toEqual([1, 3])
})

it('counts of rejected calls go after theirs', async () => {
  for (const [ip, days] of [
    ['192.0.2.1', DAYS - 1],
    ['192.0.2.2', DAYS + 1],
    ['192.0.2.3', 4_000],
  ] as const) {
    await sql(
      `INSERT INTO rejected_calls VALUES ($1, date_trunc('minute', now()) - ${days} * interval '1 day', 'messages', 1)`,
      [ip],
    )
  }
  await sweep()
  expect(await sql(`SELECT ip FROM rejected_calls WHERE ip LIKE '192.0.2.%'`)).toEqual([{ ip: '192.0.2.1' }])
})
