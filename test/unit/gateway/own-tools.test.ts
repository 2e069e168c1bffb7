import { afterEach, describe, expect, it, vi } from 'vitest'
import type { OpenTurn, TurnRequest } from '../../../src/gateway/model-turn.ts'
import { modelRequest, turnRequest, withHosted } from '../../../src/responses/context/model-request.ts'
import type { Owner } from '../../../src/responses/model/types.ts'
import type { ServiceTool } from '../../../src/responses/tools/hosted-tool.ts'
import { integrationTool } from '../../../src/responses/tools/integrations/offered-tools.ts'
import { toolSearch } from '../../../src/responses/tools/integrations/tool-search.ts'
import { hostedTools } from '../../../src/responses/tools/registry.ts'
import { toolRules } from '../../../src/responses/tools/tool-rules.ts'
import type { ResponseSettings } from '../../../src/wire/responses.ts'
import { somePrincipal } from '../calls/fixtures.ts'
import { message, NOTHING_OPENS } from '../responses/items.ts'
import { IDENTITY, type Json, streamed, TurnWorld, whole } from './model-turn-harness.ts'
import { chunks } from './stream-reading.ts'

/**
 * Turns whose body has tools of this service are read without them. Each is made twice, with the place of these tools and
 * without it: what the upstream gets, what is reserved, what is recorded and what is refused must be the same.
 */

afterEach(() => vi.unstubAllGlobals())

const CONFIGURATION = { WEB_EGRESS_ALLOW: [], SEARCH_PRICE: 0, SEARCH_PROVIDER: 'none', SEARCH_KEYS: [] }
const unused = () => {
  throw new Error('no tool runs here')
}
const HOSTED = hostedTools(
  {
    configuration: CONFIGURATION as unknown as Parameters<typeof hostedTools>[0]['configuration'],
    publicNetwork: null,
    browser: { quickAction: unused },
  },
  unused,
)

const label = { label: 'notes', place: 'tools[0]', connectionId: null }
const INTEGRATION = integrationTool({
  tool: {
    name: 'notes__find',
    definition: { name: 'find', description: 'Finds CODE-1234.', inputSchema: { type: 'object' } },
    integration: { slug: 'notes' },
  },
  connectionId: null,
  needsApproval: false,
} as unknown as Parameters<typeof integrationTool>[0])
const SEARCH = toolSearch({ entries: [label] } as unknown as Parameters<typeof toolSearch>[0])

const owner: Owner = { organizationId: 'o', userId: 'u' }
const deps = { configuration: { VAULT_KEYS: new Map([['k', new Uint8Array(32)]]) } }
const rights = { headers: new Headers(), identity: IDENTITY, counted: true }
const items = [message('user', 'Ask CODE-1234 for the minutes.')]

/** The request of a turn, and the body that it would have without any knowledge of our tools. */
function turnOf(settings: ResponseSettings, tools: readonly ServiceTool[]) {
  const rules = toolRules(settings, tools)
  const call = rights as unknown as Omit<TurnRequest, 'body'>
  const { request } = turnRequest(deps, owner, call, { settings, historyIds: [] }, rules, items)
  const plain = modelRequest(withHosted(settings, rules.hosted), items, { open: NOTHING_OPENS }).bytes
  return { request, plain }
}

const fn = (name: string, more: object = {}) => ({ type: 'function', name, ...more })
const own = (name: string, ...tools: object[]) => ({ type: 'namespace', name, tools })

const TOOLS: Record<string, ResponseSettings['tools'] | null> = {
  none: null,
  'an empty list': [],
  'a function': [fn('look', { parameters: { type: 'object', properties: { CODE_1: {} } }, strict: true })],
  'one with the name of ours': [fn('shell', { description: 'Not ours: CODE-1234.' })],
  'one of a namespace with the name of ours': [own('open', fn('page')), fn('open__page')],
  'one that a provider runs': [{ type: 'web_search' }, fn('look')],
  'a free text and a large number': [
    { type: 'custom', name: 'write' },
    fn('n', { parameters: { maximum: 1234567890 } }),
  ],
}

type Choice = ResponseSettings['tool_choice']

const CHOICES: Record<string, Choice> = {
  none: undefined,
  'no tool': 'none',
  'any tool': 'required',
  'one of ours': { type: 'function', name: 'read_file' },
  'a family of ours': { type: 'shell' },
  'some of ours': {
    type: 'allowed_tools',
    mode: 'required',
    tools: [{ type: 'function', name: 'read_file' }, { type: 'web_search' }],
  },
  'an integration': { type: 'mcp', server_label: 'notes' },
}

const SERVER_TOOLS: Record<string, readonly ServiceTool[]> = {
  'all of ours': HOSTED,
  'one of ours': HOSTED.slice(0, 1),
  'ours and integrations': [...HOSTED, INTEGRATION, SEARCH],
  'integrations alone': [INTEGRATION],
}

const policy = (action: string, pattern: string): Json => ({
  directions: ['request'],
  rules: [{ custom: 'found', action }],
  patterns: [{ id: 'found', pattern }],
  dictionaries: [],
  uninspectable: {},
  scope: {},
})

/** The caller's text and that of an integration have the first pattern, our definitions the second. */
const POLICIES: Record<string, Json[]> = {
  'one that finds nothing': [policy('redact', 'NOTHING-[0-9]{4}')],
  'one that redacts what the caller sends': [policy('redact', 'CODE-[0-9]{4}')],
  'one that refuses what the caller sends': [policy('block', 'CODE-[0-9]{4}')],
  'one that notes a word of ours': [policy('warn', 'bash-like')],
  'one that redacts a word of ours': [policy('redact', 'bash-like')],
  'one that replaces a word of ours': [policy('tokenise', 'bash-like')],
  'one that refuses a word of ours': [policy('block', 'bash-like')],
}

const CHAT_ANSWER = chunks(
  { id: 'c', choices: [{ index: 0, delta: { content: 'ok' }, finish_reason: 'stop' }] },
  '[DONE]',
)
const MESSAGES_ANSWER = whole({
  ...{ id: 'm', type: 'message', role: 'assistant', model: 'claude', stop_reason: 'end_turn' },
  content: [{ type: 'text', text: 'ok' }],
  usage: { input_tokens: 9, output_tokens: 1 },
})

interface Seen {
  sent: string[]
  basis: OpenTurn['basis'] | null
  recorded: string
  error: string | null
}

interface Place {
  model: string
  policies: Json[]
  organizationId: string
}

async function seenOf(
  { model, policies, organizationId }: Place,
  request: Partial<TurnRequest>,
): Promise<Seen> {
  const answer = model === 'messages-model' ? MESSAGES_ANSWER : streamed(CHAT_ANSWER)
  const world = new TurnWorld([answer], policies, organizationId)
  let basis: OpenTurn['basis'] | null = null
  let error: string | null = null
  try {
    const models = { all: true, ids: new Set<string>() }
    const principal = somePrincipal({ organizationId, userId: 'u', models })
    const admitted = await world.admit({}, { ...request, principal })
    basis = admitted.open.basis
    for await (const _ of (await world.send(admitted)).batches);
  } catch (thrown) {
    error = String(thrown)
  }
  const outcome = await world.outcome()
  const recorded = JSON.stringify([world.ledger.closed.length, outcome], withoutTimes)
  return { sent: world.asked.map(({ text }) => text), basis, recorded, error }
}

const TIMES = new Set(['durationMilliseconds', 'timing'])
const withoutTimes = (name: string, value: unknown) => (TIMES.has(name) ? null : value)

async function expectEqual(
  place: Place,
  given: ResponseSettings['tools'] | null,
  choice: Choice,
  tools: readonly ServiceTool[],
) {
  const settings = { model: place.model, tools: given, tool_choice: choice } as ResponseSettings
  const { body, own } = turnOf(settings, tools).request
  const known = await seenOf(place, { body, own })
  expect(known).toEqual(await seenOf(place, { body }))
  expect(known.sent).toHaveLength(known.error === null ? 1 : 0)
}

describe('a turn with tools of this service', () => {
  for (const [offered, tools] of Object.entries(SERVER_TOOLS)) {
    it(`has the body that it would have without them known: ${offered}`, () => {
      for (const given of Object.values(TOOLS)) {
        for (const tool_choice of Object.values(CHOICES)) {
          const settings = { model: 'm', instructions: 'Be ä.', tools: given, tool_choice, extra: 1 }
          const { request, plain } = turnOf(settings as ResponseSettings, tools)
          const text = new TextDecoder().decode(request.body)
          expect(text).toBe(new TextDecoder().decode(plain))
          if (!request.own) continue
          const { start, end, at, tools: known } = request.own
          const bytes = Buffer.from(request.body)
          const rest = JSON.parse(`${bytes.subarray(0, start)}${bytes.subarray(end)}`)
          const all = JSON.parse(text)
          const left = all.tools.toSpliced(at, known.length)
          expect(rest).toEqual({ ...all, tools: left })
          expect(all.tools.slice(at, at + known.length)).toEqual(known.map(({ definition }) => definition))
        }
      }
    })
  }

  for (const model of ['chat-model', 'messages-model']) {
    const inOrganization = (policies: Json[]) => ({ model, policies, organizationId: crypto.randomUUID() })

    for (const [offered, tools] of Object.entries(SERVER_TOOLS)) {
      it(`is sent, bounded and recorded as if it were read whole: ${model}, ${offered}`, async () => {
        const place = inOrganization([])
        for (const given of Object.values(TOOLS)) {
          for (const choice of Object.values(CHOICES)) await expectEqual(place, given, choice, tools)
        }
      })
    }

    for (const [name, policies] of Object.entries(POLICIES)) {
      it(`is inspected as if it were read whole: ${model}, ${name}`, async () => {
        const place = inOrganization(policies)
        for (const tools of Object.values(SERVER_TOOLS)) {
          for (const given of Object.values(TOOLS)) await expectEqual(place, given, undefined, tools)
        }
      })
    }
  }

  it('is read whole where it is large', async () => {
    const { request } = turnOf({ model: 'chat-model', instructions: 'x'.repeat(300_000) }, HOSTED)
    const place = { model: 'chat-model', policies: [], organizationId: crypto.randomUUID() }
    const { body, own } = request
    expect(await seenOf(place, { body, own })).toEqual(await seenOf(place, { body }))
  })

  it('has no number of 16 digits in a definition, with which its body would be parsed slowly', () => {
    for (const { definition } of [...HOSTED, SEARCH])
      expect(JSON.stringify(definition)).not.toMatch(/[0-9]{16}/)
  })
})
