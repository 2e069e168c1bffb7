import { entryOf, type Json, present } from '../../protocols/json.ts'
import { can, type TargetModel } from '../target-model.ts'
import type { CanonicalRequest } from './canonical-request.ts'

/**
 * Makers of models on Bedrock whose requests differ. Bedrock has no list of the differences that can be read: they follow
 * from the name of the model, and a model without a known maker gets what all of them take.
 */
type Maker = 'nova' | 'nova-2' | 'gpt' | 'gpt-oss' | 'mistral' | 'cohere' | 'other'

const MAKERS: ReadonlyArray<[name: RegExp, maker: Maker]> = [
  [/amazon\.nova-2/, 'nova-2'],
  [/amazon\.nova/, 'nova'],
  [/gpt-oss/, 'gpt-oss'],
  [/openai\.gpt/, 'gpt'],
  [/mistral\./, 'mistral'],
  [/cohere\./, 'cohere'],
]

/** @param upstreamModel an id with or without the region of its inference profile, or an ARN. */
export const makerOf = (upstreamModel: string): Maker =>
  MAKERS.find(([name]) => name.test(upstreamModel.toLowerCase()))?.[1] ?? 'other'

/**
 * Other models refuse cache points. Nova takes them in instructions and messages, not after tools and their results
 * (https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html).
 */
export const takesCachePoints = (maker: Maker): boolean => maker === 'nova' || maker === 'nova-2'

/** `top_k`, which Converse does not have, in the model's own request; null for a model without it. */
export function topKFields(maker: Maker, topK: number | undefined): Json | null {
  if (topK === undefined) return null
  if (takesCachePoints(maker)) return { inferenceConfig: { topK } }
  if (maker === 'mistral') return { top_k: topK }
  return maker === 'cohere' ? { k: topK } : null
}

/** Efforts of models that have three. */
const EFFORTS: Readonly<Record<string, 'low' | 'medium' | 'high'>> = {
  none: 'low',
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
}

/**
 * The effort of reasoning in the model's own request, by its maker; null where it has no such choice.
 * @returns `unbounded` for an effort beside which the model refuses sampling and a limit of tokens.
 */
export function effortFields(
  maker: Maker,
  { reasoning, maxTokens }: Pick<CanonicalRequest, 'reasoning' | 'maxTokens'>,
  target: TargetModel,
): { fields: Json; unbounded: boolean } | null {
  const effort = entryOf(EFFORTS, reasoning.effort ?? '')
  if (effort === undefined || !can(target, 'reasoning')) return null
  if (maker === 'gpt-oss') return { fields: { reasoning_effort: effort }, unbounded: false }
  if (maker === 'gpt') return { fields: { reasoning: { effort } }, unbounded: false }
  if (maker !== 'nova-2') return null
  if (reasoning.effort === 'none') return { fields: novaReasoning('disabled'), unbounded: false }
  // The caller's limit holds: it is what the call may cost.
  const unbounded = effort === 'high' && maxTokens === undefined
  const most = effort === 'high' && !unbounded ? 'medium' : effort
  return { fields: novaReasoning('enabled', most), unbounded }
}

/** https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html */
const novaReasoning = (type: 'enabled' | 'disabled', maxReasoningEffort?: string): Json => ({
  reasoningConfig: present({ type, maxReasoningEffort }),
})
