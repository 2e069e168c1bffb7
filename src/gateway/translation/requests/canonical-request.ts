import type { Json } from '../../protocols/json.ts'

/**
 * The request of any caller as one value, for the wires that are written from it: a new wire needs one writer, and no
 * converter for each caller. Chat completions and messages, the two older wires, are converted to each other directly.
 */
export interface CanonicalRequest {
  system: TextPart[]
  /** Alternating roles, none empty. */
  turns: CanonicalTurn[]
  tools: CanonicalTool[]
  toolChoice: CanonicalToolChoice
  /** False where the model may call only one tool at a time. */
  parallelCalls: boolean
  format: CanonicalFormat | null
  sampling: CanonicalSampling
  stop: string[]
  /** Tokens of output, reasoning included. */
  maxTokens: number | undefined
  reasoning: CanonicalReasoning
  choices: number
  stream: boolean
}

export interface CanonicalTurn {
  role: 'user' | 'assistant'
  parts: CanonicalPart[]
}

/** Marks the end of the part of a prompt that is to be cached. */
interface Cacheable {
  cache?: { ttl: string | undefined }
}

export type TextPart = { kind: 'text'; text: string } & Cacheable

/** Content that is sent in base64. */
export type MediaPart = {
  kind: 'image' | 'document' | 'audio'
  mediaType: string
  data: string
  /** Name of a file, where the caller gave one. */
  name?: string | undefined
} & Cacheable

export type CallPart = {
  kind: 'call'
  id: string
  name: string
  input: Json
  /** Proof of the reasoning before the call, of the target's own origin. */
  signature: string | null
} & Cacheable

export type ResultPart = {
  kind: 'result'
  /** Id and name of the call that it answers. */
  id: string
  name: string
  content: Array<TextPart | MediaPart>
  isError: boolean
} & Cacheable

/**
 * Reasoning of the target's own origin; that of others is left out. It is signed, or `redacted`: data that only its own
 * family can read.
 */
export interface ReasoningPart {
  kind: 'reasoning'
  text: string
  signature: string | null
  redacted: string | null
}

export type CanonicalPart = TextPart | MediaPart | CallPart | ResultPart | ReasoningPart

export interface CanonicalTool {
  name: string
  description: string | undefined
  /** JSON schema of an object. */
  parameters: Json
  strict: boolean
}

/** `names` limits the tools that may be called; null for all of them. */
export interface CanonicalToolChoice {
  mode: 'auto' | 'none' | 'required'
  names: string[] | null
}

export type CanonicalFormat =
  | { kind: 'json_object' }
  /** `place` of the schema in the caller's request, for errors. */
  | { kind: 'json_schema'; name: string; schema: Json; place: string }

interface CanonicalSampling {
  temperature?: number | undefined
  topP?: number | undefined
  topK?: number | undefined
  seed?: number | undefined
  presencePenalty?: number | undefined
  frequencyPenalty?: number | undefined
}

export interface CanonicalReasoning {
  /** `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`; undefined for the model's default. */
  effort: string | undefined
  /** Tokens, where the caller gave a budget. */
  budget: number | undefined
  /** Whether readable reasoning is to be returned. */
  shows: boolean
}

/** Names of fields of a `CanonicalRequest`, as the tables of members refer to them (`canonical-members.ts`). */
export type CanonicalField =
  | 'choices'
  | 'effort'
  | 'format'
  | 'frequencyPenalty'
  | 'parallelCalls'
  | 'presencePenalty'
  | 'seed'
  | 'temperature'
  | 'topK'
  | 'topP'

/** Fields that a writer has expressed, or whose default it has; the others are reported as dropped. */
export type ExpressedFields = Readonly<Partial<Record<CanonicalField, true>>>
