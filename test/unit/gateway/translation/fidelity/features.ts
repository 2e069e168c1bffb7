import type { Json } from '../../../../../src/gateway/protocols/json.ts'

/** The wire formats, by the words of the document. */
export type Wire = 'chat' | 'messages' | 'completions'

/** Protocols of caller and provider; equal ones first. */
export const PAIRS = [
  ['chat', 'chat'],
  ['messages', 'messages'],
  ['completions', 'completions'],
  ['chat', 'messages'],
  ['messages', 'chat'],
  ['completions', 'chat'],
  ['completions', 'messages'],
] as const satisfies ReadonlyArray<readonly [caller: Wire, upstream: Wire]>

export type PairName =
  | 'chat:chat'
  | 'messages:messages'
  | 'completions:completions'
  | 'chat:messages'
  | 'messages:chat'
  | 'completions:chat'
  | 'completions:messages'

export interface Pair {
  name: PairName
  caller: Wire
  upstream: Wire
}

export const pairs: readonly Pair[] = PAIRS.map(([caller, upstream]) => ({
  name: `${caller}:${upstream}` as PairName,
  caller,
  upstream,
}))

export type Verdict = 'kept' | 'translated' | 'dropped' | 'refused'

/** The expected result of a feature: its form in the other protocol, or a part of the error that refuses it. */
export type Expected = 'kept' | 'dropped' | { becomes: Json } | { refused: string }

export type Form = 'whole' | 'streamed'

export interface Feature {
  name: string
  /**
   * Members that express the feature, added to a minimal request or answer. A protocol without them cannot express it.
   */
  said: Partial<Record<Wire, Json>>
  /** Places of the feature, by protocol: paths from the top, `-1` for the last element. */
  places: Partial<Record<Wire, readonly string[]>>
  /** The result by pair. Between equal protocols the default is kept. */
  expected: Partial<Record<PairName, Expected>>
  /** For the reader who wonders what it becomes, or why it does not arrive. */
  note?: string
  /** Abilities of the model; it does not reason by default. */
  capabilities?: readonly string[]
}

export interface AnswerFeature extends Feature {
  /** Forms of an answer in which it can happen; both by default. */
  forms?: readonly Form[]
  /** Status of an error in place of an answer. */
  status?: number
  /** Payloads of the upstream's stream, where it is not what a plain server makes of the whole answer. */
  streams?: Partial<Record<Wire, readonly (Json | string)[]>>
  /** For a feature that a member of the caller's request causes: the place of that member. */
  onlyOn?: readonly PairName[]
  /** Members of the caller's request. */
  asked?: Partial<Record<Wire, Json>>
}

export interface Group<Kind extends Feature = Feature> {
  title: string
  features: readonly Kind[]
}

/** Members of a value by their paths; those that are absent or null are left out. */
export function pick(value: unknown, paths: readonly string[]): Json {
  const found = paths.map((path) => [path, at(value, path.split('.'))] as const)
  return Object.fromEntries(found.filter(([, each]) => each !== undefined && each !== null))
}

function at(value: unknown, path: readonly string[]): unknown {
  const [name, ...rest] = path
  if (name === undefined) return value
  if (Array.isArray(value)) return at(value.at(Number(name)), rest)
  return typeof value === 'object' && value !== null ? at((value as Json)[name], rest) : undefined
}

export const becomes = (words: Json): Expected => ({ becomes: words })
export const refused = (converted: string): Expected => ({ refused: converted })

/** A conversation of its own instead of the plain one. */
export const conversation = (...messages: Json[]): Json => ({ messages })
export const user = (content: unknown): Json => ({ role: 'user', content })
export const assistant = (content: unknown, more: Json = {}): Json => ({
  role: 'assistant',
  content,
  ...more,
})
export const text = (words: string, more: Json = {}): Json => ({ type: 'text', text: words, ...more })
