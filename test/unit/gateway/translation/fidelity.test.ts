import { existsSync, readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { PROVIDER_KINDS } from '../../../../src/gateway/providers/provider.ts'
import { CHAT_MEMBERS } from '../../../../src/gateway/translation/requests/chat-members.ts'
import { COMPLETION_MEMBERS } from '../../../../src/gateway/translation/requests/completion-members.ts'
import type { MemberRules } from '../../../../src/gateway/translation/requests/member-rules.ts'
import { MESSAGES_MEMBERS } from '../../../../src/gateway/translation/requests/messages-members.ts'
import { provideIdentityStream } from '../identity-stream.ts'
import { assembled } from './fidelity/assemble.ts'
import { ANSWER_GROUPS, REQUEST_GROUPS } from './fidelity/cases.ts'
import { FIDELITY_FILE, fidelityDocument } from './fidelity/document.ts'
import { RESPONSES_MEMBERS } from './fidelity/documented-members.ts'
import { type Pair, type PairName, pairs } from './fidelity/features.ts'
import { PLAIN_REQUESTS, runRequest } from './fidelity/run-request.ts'
import { streamOf, streamText } from './fidelity/stream-of.ts'
import { MEMBER_SAMPLES, sampleOf } from './fidelity/vendor-samples.ts'
import { memberVerdict, VENDORS, type VendorCaller } from './fidelity/vendors.ts'
import { asExpected, asObserved, observeAnswer, observeRequest, PLAIN_ANSWERS } from './fidelity/verdicts.ts'

beforeAll(provideIdentityStream)

const named = <Kind extends { name: string }>(
  groups: ReadonlyArray<{ title: string; features: readonly Kind[] }>,
) =>
  groups.flatMap(({ title, features }) =>
    features.map((feature) => [`${title}: ${feature.name}`, feature] as const),
  )

describe('what becomes of a request’s features', () => {
  it.each(named(REQUEST_GROUPS))('%s', (_name, feature) => {
    const observations = observeRequest(feature)
    expect(observations.map(asObserved)).toEqual(observations.map(asExpected))
    expectNoIdleExpectations(feature, observations)
  })
})

describe('what becomes of an answer’s features', () => {
  const forms = named(ANSWER_GROUPS).flatMap(([name, feature]) =>
    (feature.forms ?? (['whole', 'streamed'] as const)).map((form) => [name, form, feature] as const),
  )
  it.each(forms)('%s, %s', async (_name, form, feature) => {
    const observations = await observeAnswer(feature, form)
    expect(observations.map(asObserved)).toEqual(observations.map(asExpected))
  })
})

/** An expectation of a pair on which the feature cannot be said would never be looked at. */
function expectNoIdleExpectations(
  feature: { expected: Partial<Record<PairName, unknown>> },
  observations: ReadonlyArray<{ pair: Pair }>,
) {
  const looked = observations.map(({ pair }) => pair.name as string)
  const shared = new Set(['dropped'])
  const idle = Object.entries(feature.expected).filter(
    ([pair, expected]) => !looked.includes(pair) && !shared.has(String(expected)),
  )
  expect(idle).toEqual([])
}

describe('between equal protocols', () => {
  const native = pairs.filter(({ caller, upstream }) => caller === upstream)
  it.each(native)('$name passes a plain request byte for byte', (pair) => {
    const outcome = runRequest(pair, PLAIN_REQUESTS[pair.caller])
    const bytes = 'bytes' in outcome ? new TextDecoder().decode(outcome.bytes) : outcome.refused
    expect(bytes).toBe(JSON.stringify(PLAIN_REQUESTS[pair.caller]))
  })
})

describe('the measure itself', () => {
  it.each(['chat', 'messages', 'completions'] as const)(
    'puts a plain stream of %s together again',
    (wire) => {
      const answer = PLAIN_ANSWERS[wire]
      const again = assembled(wire, streamText(wire, streamOf(wire, answer)))
      expect(again).toEqual({ ...answer, ended: true })
    },
  )
})

describe('the tables of members', () => {
  const TABLES: Array<[PairName, MemberRules]> = [
    ['chat:messages', CHAT_MEMBERS],
    ['messages:chat', MESSAGES_MEMBERS],
    ['completions:chat', COMPLETION_MEMBERS],
  ]
  /** Every member that is kept or refused accepts one of these values. */
  const SAMPLES = [true, 2, 0.5, 'sample', ['sample'], [{ sample: 1 }], { sample: 1 }]
  /** Sent to the upstream only together with other members. */
  const NOT_ALONE = new Set(['stream_options'])

  it.each(TABLES)('match the treatment of members on %s', (name, rules) => {
    const pair = pairs.find((each) => each.name === name) as Pair
    for (const [member, { treatment, refuses }] of Object.entries(rules)) {
      const outcomes = SAMPLES.map((sample) => ({ sample, outcome: withMember(pair, member, sample) }))
      const bodies = outcomes.flatMap(({ sample, outcome }) =>
        'body' in outcome ? [{ sample, ...outcome }] : [],
      )
      if (treatment === 'dropped') {
        expect(bodies.length, member).toBeGreaterThan(0)
        for (const { body } of bodies) expect(JSON.stringify(body), member).not.toContain(`"${member}"`)
      } else if (treatment === 'kept' && !NOT_ALONE.has(member)) {
        const same = bodies.filter(
          ({ body, sample }) => JSON.stringify(body[member]) === JSON.stringify(sample),
        )
        expect(same.length, member).toBeGreaterThan(0)
      } else if (treatment === 'refused') {
        const refusals = outcomes.filter(({ outcome }) => 'refused' in outcome)
        expect(refusals.length, member).toBeGreaterThan(0)
        for (const { sample, outcome } of outcomes) {
          if (refuses?.(sample))
            expect('refused' in outcome, `${member} ${JSON.stringify(sample)}`).toBe(true)
        }
      }
    }
  })

  const withMember = (pair: Pair, member: string, sample: unknown) =>
    runRequest(pair, { ...PLAIN_REQUESTS[pair.caller], [member]: sample })
})

describe('what becomes of a request at each vendor', () => {
  const TABLES: Array<[VendorCaller, MemberRules]> = [
    ['chat_completions', CHAT_MEMBERS],
    ['messages', MESSAGES_MEMBERS],
    ['responses', RESPONSES_MEMBERS],
  ]

  it.each(TABLES)('is shown for every member of %s that translation knows', (caller, rules) => {
    expect(Object.keys(MEMBER_SAMPLES[caller]).sort()).toEqual(Object.keys(rules).sort())
  })

  it('is shown for every kind of provider', () => {
    expect(new Set(VENDORS.map(({ kind }) => kind))).toEqual(new Set(Object.keys(PROVIDER_KINDS)))
  })

  const verdictAt = (title: string, caller: VendorCaller, member: string) => {
    const vendor = VENDORS.find((each) => each.title === title)
    return vendor && memberVerdict(vendor, caller, sampleOf(caller, member))
  }

  it.each<[string, VendorCaller, string, string]>([
    ['OpenAI', 'chat_completions', 'logit_bias', 'kept'],
    ['Groq', 'chat_completions', 'logit_bias', 'dropped'],
    ['Mistral', 'chat_completions', 'seed', 'translated'],
    ['Ollama', 'messages', 'tool_choice', 'dropped'],
    ['DeepSeek', 'chat_completions', 'reasoning_effort', 'translated'],
    ['Anthropic', 'messages', 'inference_geo', 'kept'],
    ['Claude on Bedrock', 'messages', 'inference_geo', 'refused'],
    ['Claude on Bedrock', 'messages', 'stream', 'translated'],
    ['Claude on Vertex', 'messages', 'stream', 'kept'],
    ['Claude on Vertex', 'messages', 'service_tier', 'dropped'],
    // A lost schema gives prose where JSON was asked for.
    ['Claude on Bedrock', 'messages', 'output_config', 'refused'],
    ['Claude on Vertex', 'messages', 'output_format', 'refused'],
    ['Claude in Foundry', 'messages', 'output_format', 'kept'],
    ['Gemini', 'chat_completions', 'seed', 'translated'],
    ['Nova on Bedrock', 'chat_completions', 'seed', 'dropped'],
    ['Nova on Bedrock', 'messages', 'top_k', 'translated'],
    ['others on Bedrock', 'messages', 'top_k', 'dropped'],
    ['Nova on Bedrock', 'responses', 'text', 'translated'],
  ])('%s, %s: %s is %s', (title, caller, member, verdict) => {
    expect(verdictAt(title, caller, member)).toBe(verdict)
  })

  it.each<[VendorCaller, MemberRules, string]>([
    ['chat_completions', CHAT_MEMBERS, 'Anthropic'],
    ['messages', MESSAGES_MEMBERS, 'OpenAI'],
  ])('agrees with the table of %s on what is refused and dropped', (caller, rules, title) => {
    for (const [member, { treatment, refuses }] of Object.entries(rules)) {
      const { value } = MEMBER_SAMPLES[caller][member] ?? {}
      const isExpected = treatment === 'refused' && refuses?.(value) === true
      expect(verdictAt(title, caller, member) === 'refused', member).toBe(isExpected)
      if (treatment === 'dropped') expect(verdictAt(title, caller, member), member).toBe('dropped')
    }
  })
})

describe('docs/fidelity.md', () => {
  it('agrees with these tests; `npm run generate:fidelity` writes it anew', async () => {
    const written = existsSync(FIDELITY_FILE) ? readFileSync(FIDELITY_FILE, 'utf8') : ''
    expect(written).toBe(await fidelityDocument())
  })
})
