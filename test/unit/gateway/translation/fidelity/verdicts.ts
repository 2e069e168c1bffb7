import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { assembled } from './assemble.ts'
import {
  type AnswerFeature,
  type Expected,
  type Feature,
  type Form,
  type Pair,
  pairs,
  pick,
  type Verdict,
  type Wire,
} from './features.ts'
import { answerError, answerStreamed, answerWhole, UPSTREAM_MODEL } from './run-answer.ts'
import { PLAIN_REQUESTS, runRequest } from './run-request.ts'
import { streamOf, streamText } from './stream-of.ts'

/** Result of a feature on a pair. */
export interface Observation {
  pair: Pair
  verdict: Verdict | 'changed'
  /** The members that the other side reads. */
  seen: Json
  /** In a refusal's own words. */
  refusal: string | null
  expected: Expected
}

/**
 * Pairs on which a feature can be expressed. `from` is its sender: the caller of a request, the upstream of an answer.
 */
const pairsOf = (feature: Feature, from: 'caller' | 'upstream') =>
  pairs.filter((pair) => feature.said[pair[from]] !== undefined)

const expectedOf = (feature: Feature, pair: Pair): Expected => feature.expected[pair.name] ?? 'kept'

export function observeRequest(feature: Feature): Observation[] {
  return pairsOf(feature, 'caller').map((pair) => {
    const plain = PLAIN_REQUESTS[pair.caller]
    const request = { ...plain, ...feature.said[pair.caller] }
    const expected = expectedOf(feature, pair)
    const outcome = runRequest(pair, request, feature.capabilities)
    if ('refused' in outcome) {
      return { pair, verdict: 'refused', seen: {}, refusal: outcome.refused, expected }
    }
    const without = runRequest(pair, plain, feature.capabilities)
    const before = pick(request, placesOf(feature, pair.caller))
    const places = placesOf(feature, pair.upstream)
    const seen = pick(outcome.body, places)
    const usual = 'body' in without ? pick(without.body, places) : {}
    return { pair, verdict: verdictOf({ before, seen, usual, expected }), seen, refusal: null, expected }
  })
}

export async function observeAnswer(feature: AnswerFeature, form: Form): Promise<Observation[]> {
  const asked = pairsOf(feature, 'upstream').filter(({ name }) => feature.onlyOn?.includes(name) ?? true)
  const observations = asked.map(async (pair): Promise<Observation> => {
    const plain = PLAIN_ANSWERS[pair.upstream]
    const answer = { ...plain, ...feature.said[pair.upstream] }
    const expected = expectedOf(feature, pair)
    const places = placesOf(feature, pair.caller)
    const seen = pick(await answered(feature, pair, answer, form), places)
    const usual = feature.status
      ? {}
      : pick(await answered({ ...feature, streams: {} }, pair, plain, form), places)
    const before = pick(toldBy(feature, pair.upstream, answer), placesOf(feature, pair.upstream))
    return { pair, verdict: verdictOf({ before, seen, usual, expected }), seen, refusal: null, expected }
  })
  return Promise.all(observations)
}

/** The upstream's own answer. */
function toldBy(feature: AnswerFeature, upstream: Wire, answer: Json): Json {
  const stream = feature.streams?.[upstream]
  if (feature.status) return { ...(feature.said[upstream] ?? {}), status: feature.status }
  return stream ? assembled(upstream, streamText(upstream, stream)) : answer
}

async function answered(feature: AnswerFeature, pair: Pair, answer: Json, form: Form): Promise<Json> {
  const asked = feature.asked?.[pair.caller]
  if (feature.status) return answerError(pair, feature.status, feature.said[pair.upstream] ?? {})
  if (form === 'whole') return answerWhole(pair, answer, asked)
  const stream = feature.streams?.[pair.upstream] ?? streamOf(pair.upstream, answer)
  const bytes = new TextEncoder().encode(streamText(pair.upstream, stream))
  return assembled(pair.caller, await answerStreamed(pair, [bytes], asked))
}

function placesOf(feature: Feature, wire: Wire): readonly string[] {
  return feature.places[wire] ?? []
}

interface Comparison {
  /** The feature as sent, as received, and the result without it. */
  before: Json
  seen: Json
  usual: Json
  expected: Expected
}

/** Any other result is a change: not the same, not dropped, not the expected form. */
function verdictOf({ before, seen, usual, expected }: Comparison): Observation['verdict'] {
  if (Object.keys(before).length === 0) throw new Error('the feature is not said where it is looked for')
  if (isDeepStrictEqual(seen, before)) return 'kept'
  if (typeof expected === 'object' && 'becomes' in expected && isDeepStrictEqual(seen, expected.becomes)) {
    return 'translated'
  }
  return Object.keys(seen).length === 0 || isDeepStrictEqual(seen, usual) ? 'dropped' : 'changed'
}

/** The expected result in the form of an observation, to compare both. */
export function asExpected({ pair, expected, refusal }: Observation) {
  if (expected === 'kept' || expected === 'dropped') return { pair: pair.name, verdict: expected }
  if ('becomes' in expected) return { pair: pair.name, verdict: 'translated', seen: expected.becomes }
  const converted = refusal?.includes(expected.refused) ? refusal : expected.refused
  return { pair: pair.name, verdict: 'refused', refusal: converted }
}

export function asObserved({ pair, verdict, seen, refusal, expected }: Observation) {
  if (verdict === 'refused') return { pair: pair.name, verdict, refusal }
  if (verdict === 'translated') return { pair: pair.name, verdict, seen }
  return verdict === expected ? { pair: pair.name, verdict } : { pair: pair.name, verdict, seen }
}

/** The plainest answer of each protocol. */
export const PLAIN_ANSWERS: Record<Wire, Json> = {
  chat: {
    id: 'chatcmpl-7',
    object: 'chat.completion',
    created: 1_600_000_000,
    model: UPSTREAM_MODEL,
    choices: [
      { index: 0, message: { role: 'assistant', content: 'Hello' }, logprobs: null, finish_reason: 'stop' },
    ],
    usage: { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 },
  },
  messages: {
    id: 'msg_7',
    type: 'message',
    role: 'assistant',
    model: UPSTREAM_MODEL,
    content: [{ type: 'text', text: 'Hello' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 20, output_tokens: 9 },
  },
  completions: {
    id: 'cmpl-7',
    object: 'text_completion',
    created: 1_600_000_000,
    model: UPSTREAM_MODEL,
    choices: [{ index: 0, text: 'Hello', logprobs: null, finish_reason: 'stop' }],
    usage: { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 },
  },
}
