import { type JsonRecord, toList, toRecord, toText } from '../../json-value.ts'
import { signatureOf } from './thought-signatures.ts'

const FINISH_REASONS: Readonly<Record<string, string>> = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  content_filter: 'SAFETY',
}

/** Tokens of the thoughts of an answer whose script does not count its own. */
const THOUGHT_TOKENS = 8
const THOUGHT = { text: '**Considering the request**', thought: true }
/** The signature of an answer without calls, which comes on a part without text. */
const TEXT_SIGNATURE = { text: '', thoughtSignature: signatureOf('text', {}) }

/** The answers to one request, as generateContent gives them. */
export class GeminiAnswers {
  readonly #modelVersion: string
  readonly #showsThoughts: boolean
  readonly #hasIds: boolean
  readonly #responseId = `rsp-${crypto.randomUUID()}`

  /** @param hasIds whether calls have ids; those of Vertex have none. */
  constructor(modelVersion: string, showsThoughts: boolean, hasIds: boolean) {
    this.#modelVersion = modelVersion
    this.#showsThoughts = showsThoughts
    this.#hasIds = hasIds
  }

  /** A whole answer. @param chat a chat completion. */
  whole(chat: JsonRecord): JsonRecord {
    const { message, finish_reason } = toRecord(toList(chat.choices)[0])
    const { content, refusal, tool_calls, reasoning_content } = toRecord(message)
    const text = toText(content) + toText(refusal)
    const calls = toList(tool_calls).map((call) => toRecord(toRecord(call).function))
    const parts = [
      ...this.thoughts,
      ...thoughtsOf(reasoning_content),
      ...(text === '' ? [] : [{ text }]),
      ...this.endingParts(calls),
    ]
    return this.ending(parts, toText(finish_reason), chat.usage)
  }

  get thoughts(): JsonRecord[] {
    return this.#showsThoughts ? [THOUGHT] : []
  }

  /** A chunk of a stream that goes on. */
  chunk(parts: readonly JsonRecord[]): JsonRecord {
    return this.#answer({ content: { parts, role: 'model' }, index: 0 }, undefined)
  }

  /** The last chunk of a stream, or a whole answer. */
  ending(parts: readonly JsonRecord[], finishReason: string, usage: unknown): JsonRecord {
    const reason = FINISH_REASONS[finishReason] ?? 'OTHER'
    const content = parts.length > 0 ? { parts, role: 'model' } : {}
    return this.#answer({ content, finishReason: reason, index: 0 }, usage)
  }

  #answer(candidate: JsonRecord, usage: unknown): JsonRecord {
    return {
      candidates: [candidate],
      usageMetadata: usageOf(toRecord(usage)),
      modelVersion: this.#modelVersion,
      responseId: this.#responseId,
    }
  }

  /** The parts with which an answer ends: its calls, of which the first is signed, or the signature of its text. */
  endingParts(calls: readonly JsonRecord[]): JsonRecord[] {
    if (calls.length === 0) return [TEXT_SIGNATURE]
    return calls.map(({ name, arguments: written }, index) => {
      const args = toRecord(parsed(toText(written)))
      const id = this.#hasIds ? { id: `fc-${crypto.randomUUID().slice(0, 8)}` } : {}
      const functionCall = { ...id, name, args }
      return index === 0 ? { functionCall, thoughtSignature: signatureOf(name, args) } : { functionCall }
    })
  }
}

/** Reasoning of the script as thoughts, which are shown whether they are requested or not. */
export const thoughtsOf = (reasoning: unknown): JsonRecord[] =>
  toText(reasoning) === '' ? [] : [{ text: toText(reasoning), thought: true }]

/** The input includes what was read from the cache; the output does not include the thoughts. */
function usageOf({ prompt_tokens, completion_tokens, ...details }: JsonRecord): JsonRecord {
  const cached = Number(toRecord(details.prompt_tokens_details).cached_tokens ?? 0)
  const reasoned = Number(toRecord(details.completion_tokens_details).reasoning_tokens ?? 0)
  const prompt = Number(prompt_tokens ?? 1)
  const output = Number(completion_tokens ?? 0) - reasoned
  const thoughts = reasoned || THOUGHT_TOKENS
  return {
    promptTokenCount: prompt,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    candidatesTokenCount: output,
    thoughtsTokenCount: thoughts,
    totalTokenCount: prompt + output + thoughts,
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return {}
  }
}
