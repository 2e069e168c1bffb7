import { abortAllDurableObjects } from 'cloudflare:test'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { useDatabaseGate } from './database-gate.ts'
import {
  type Caller,
  newCaller,
  newResponse,
  query,
  replayed,
  requestOf,
  seedModel,
  until,
} from './durable-response-harness.ts'
import { useScriptedModel } from './scripted-model.ts'

// An approval is for one call, wherever the object of a response dies.

const gate = useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)
const asked = requestOf(model)

/** The requests that the service of the tool got. `held` ones get no answer. */
const effects: { all: string[]; held: boolean } = { all: [], held: false }
const SERVICE = 'https://crm.example.com'
let before: typeof globalThis.fetch
beforeEach(() => {
  Object.assign(effects, { all: [], held: false })
  before = globalThis.fetch
  globalThis.fetch = async (input, init) => {
    if (!String(input instanceof Request ? input.url : input).startsWith(SERVICE)) return before(input, init)
    effects.all.push(String(init?.body))
    while (effects.held) await new Promise((resolve) => setTimeout(resolve, 1))
    return Response.json({ done: true })
  }
})
afterEach(() => {
  globalThis.fetch = before
})

const ADD = { name: 'add', inputSchema: { type: 'object' } }
const FIND = { ...ADD, name: 'find', annotations: { readOnlyHint: true } }
const TOOLS = [{ type: 'mcp', server_label: 'crm', require_approval: 'always' }]

/** A caller that may use two operations of an API. */
async function newWorld(): Promise<Caller> {
  const caller = await newCaller()
  const { organizationId } = caller.owner
  const id = crypto.randomUUID()
  const binding = {
    method: 'POST',
    path: '/',
    parameters: {},
    body: { argument: 'body', mediaType: 'text/plain' },
  }
  const tools = [ADD, FIND].map(({ name }) => ({ name, hash: `hash of ${name}` }))
  await query(
    `insert into integrations (id, organization_id, slug, display_name, kind, url, "authorization")
     values ($1, $2, 'crm', 'CRM', 'openapi', $3, '{"kind":"none"}')`,
    id,
    organizationId,
    SERVICE,
  )
  for (const definition of [ADD, FIND]) {
    await query(
      `insert into tool_definitions (integration_id, organization_id, name, hash, definition, binding, state)
       values ($1, $2, $3, $4, $5::jsonb, $6::jsonb, 'approved')`,
      id,
      organizationId,
      definition.name,
      `hash of ${definition.name}`,
      JSON.stringify(definition),
      JSON.stringify(binding),
    )
  }
  await query(
    'insert into tool_catalogues (integration_id, organization_id, tools) values ($1, $2, $3::jsonb)',
    id,
    organizationId,
    JSON.stringify(tools),
  )
  await query(
    `insert into integration_grants (id, organization_id, subject_type, subject_id, integration)
     values ($1, $2, 'organization', $3, '*')`,
    crypto.randomUUID(),
    organizationId,
    organizationId,
  )
  await query(`update api_keys set scopes = '{models,mcp}' where organization_id = $1`, organizationId)
  const credential = { ...caller.principal.credential, scopes: ['models', 'mcp'] }
  Object.assign(caller.principal, { credential, integrations: { all: true, bySlug: {} } })
  return caller
}

/** A call that waits for its approval. */
async function pending(caller: Caller, tool: string) {
  const response = newResponse(caller)
  await response.start({ tools: TOOLS })
  const first = await asked(1)
  first.call(`crm_${tool}`, '{"body":"Bob"}')
  first.finish('tool_calls')
  const { last } = await replayed(response)
  const [request] = last.output as Array<{ type: string; id: string }>
  expect(request).toMatchObject({ type: 'mcp_approval_request' })
  const approval = { type: 'mcp_approval_response', approval_request_id: request?.id, approve: true }
  const approving = {
    tools: TOOLS,
    previous_response_id: response.responseId,
    input: [approval],
    store: false,
  }
  const claims = () => query('select * from approval_claims where id = $1', request?.id)
  return { approving, claims }
}

/** Approves once more. @returns why that is refused. */
async function approvedAgain(caller: Caller, approving: object): Promise<unknown> {
  const started = await newResponse(caller).start(approving)
  return started.error
}

/** In the statement by which a call uses an approval. */
const CLAIM = 'INSERT INTO \\"approval_claims\\"'
const USED = { code: 'approval_used', status: 400 }

describe('an approval whose object dies', () => {
  it('between its use and its call is used, and its call is never made', async () => {
    const caller = await newWorld()
    const { approving, claims } = await pending(caller, 'add')
    const response = newResponse(caller)
    Object.assign(gate, { held: true, heldText: CLAIM })
    expect(await response.start(approving)).toMatchObject({ error: null })
    await until(async () => expect(await claims()).toHaveLength(1))
    await abortAllDurableObjects()
    gate.held = false

    expect((await replayed(response)).last).toMatchObject({
      status: 'failed',
      output: [{ type: 'mcp_call', status: 'incomplete' }],
    })
    expect(await approvedAgain(caller, approving)).toMatchObject(USED)
    expect(effects.all).toEqual([])
  })

  it('while its call is made is used, and the call is not made again', async () => {
    const caller = await newWorld()
    const { approving } = await pending(caller, 'add')
    const response = newResponse(caller)
    effects.held = true
    expect(await response.start(approving)).toMatchObject({ error: null })
    await until(() => expect(effects.all).toHaveLength(1))
    await abortAllDurableObjects()
    effects.held = false

    expect((await replayed(response)).last).toMatchObject({ status: 'failed' })
    expect(await approvedAgain(caller, approving)).toMatchObject(USED)
    expect(effects.all).toEqual(['Bob'])
  })

  it('before a call that only reads has the call made by the restarted object', async () => {
    const caller = await newWorld()
    const { approving, claims } = await pending(caller, 'find')
    const response = newResponse(caller)
    Object.assign(gate, { held: true, heldText: CLAIM })
    expect(await response.start(approving)).toMatchObject({ error: null })
    await until(async () => expect(await claims()).toHaveLength(1))
    await abortAllDurableObjects()
    gate.held = false

    // It is woken by a reader, and asks the model.
    const reading = response.replay()
    const second = await asked(2)
    second.say('Found.')
    second.finish()
    await reading
    expect((await replayed(response)).last).toMatchObject({ status: 'completed', output_text: 'Found.' })
    expect(effects.all).toEqual(['Bob'])
    expect(await approvedAgain(caller, approving)).toMatchObject(USED)
  })

  it('while Postgres loses the answer makes no call', async () => {
    const caller = await newWorld()
    const { approving, claims } = await pending(caller, 'add')
    const response = newResponse(caller)
    Object.assign(gate, { mode: 'answer_lost', lostText: CLAIM })
    expect(await response.start(approving)).toMatchObject({ error: null })
    expect((await replayed(response)).last).toMatchObject({ status: 'failed' })
    gate.mode = 'open'
    expect(await claims()).toHaveLength(1)
    expect(effects.all).toEqual([])
    expect(await approvedAgain(caller, approving)).toMatchObject(USED)
  })
})
