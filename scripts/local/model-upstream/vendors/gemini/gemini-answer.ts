import { type JsonRecord, toList, toRecord, toText } from '../../json-value.ts'
import { signatureOf } from './thought-signatures.ts'

const FINISH_REASONS: Readonly<Record<string, string>> = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  content_filter: 'SAFETY',
}

/** Tokens of the thoughts of every answer. */
const THOUGHT_TOKENS = 8
const THOUGHT = { text: '**Considering the request**', thought: true }
/** The signature of an answer without calls, which comes on a part without text. */
const TEXT_SIGNATURE = { text: '', thoughtSignature: signatureOf('text', {}) }

/** The answers to one request, as generateContent gives them. */
export class GeminiAnswers {
  readonly #modelVersion: string
  readonly #showsThoughts: boolean
  readonly #responseId = `rsp-${crypto.randomUUID()}`

  constructor(modelVersion: string, showsThoughts: boolean) {
    this.#modelVersion = modelVersion
    this.#showsThoughts = showsThoughts
  }

  /** A whole answer. @param chat a chat completion. */
  whole(chat: JsonRecord): JsonRecord {
    const { message, finish_reason } = toRecord(toList(chat.choices)[0])
    const { content, refusal, tool_calls } = toRecord(message)
    const text = toText(content) + toText(refusal)
    const calls = toList(tool_calls).map((call) => toRecord(toRecord(call).function))
    const parts = [...this.thoughts, ...(text === '' ? [] : [{ text }]), ...endingParts(calls)]
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
    const { prompt_tokens, completion_tokens } = toRecord(usage)
    const prompt = Number(prompt_tokens ?? 1)
    const output = Number(completion_tokens ?? 0)
    return {
      candidates: [candidate],
      usageMetadata: {
        promptTokenCount: prompt,
        candidatesTokenCount: output,
        thoughtsTokenCount: THOUGHT_TOKENS,
        totalTokenCount: prompt + output + THOUGHT_TOKENS,
      },
      modelVersion: this.#modelVersion,
      responseId: this.#responseId,
    }
  }
}

/** The parts with which an answer ends: its calls, of which the first is signed, or the signature of its text. */
export function endingParts(calls: readonly JsonRecord[]): JsonRecord[] {
  if (calls.length === 0) return [TEXT_SIGNATURE]
  return calls.map(({ name, arguments: written }, index) => {
    const args = toRecord(parsed(toText(written)))
    const functionCall = { id: `fc-${crypto.randomUUID().slice(0, 8)}`, name, args }
    return index === 0 ? { functionCall, thoughtSignature: signatureOf(name, args) } : { functionCall }
  })
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return {}
  }
}
