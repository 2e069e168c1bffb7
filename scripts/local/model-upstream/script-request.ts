import { contentText, type JsonRecord, tokensOfCharacters, toList, toRecord, toText } from './json-value.ts'
import type { Dialect } from './reply.ts'

/** The parts of a request that a built-in script can read, found in the raw bytes without parsing them. */
export class ScriptRequest {
  readonly dialect: Dialect
  /** The credential the request presented, empty when it had none. */
  readonly credential: string
  readonly #body: Buffer
  readonly #text: string
  #json: JsonRecord | undefined

  constructor(body: Buffer, text: string, dialect: Dialect, credential: string) {
    this.#body = body
    this.#text = text
    this.dialect = dialect
    this.credential = credential
  }

  /** Whether a stream was requested. */
  get stream(): boolean {
    return this.#isTrue('stream')
  }

  get includeUsage(): boolean {
    return this.#isTrue('include_usage')
  }

  /** The requested model's id. */
  get model(): string {
    const start = this.#body.indexOf('"model"')
    const window = start < 0 ? '' : this.#body.toString('utf8', start, start + 300)
    return /^"model"\s*:\s*"([^"\\]*)"/.exec(window)?.[1] ?? 'unknown'
  }

  /** Input tokens to report: `prompt=N` after the token, else 12, or by length when the body is large. */
  get promptTokens(): number {
    const { length } = this.#body
    return this.count('prompt', length > 1024 * 1024 ? tokensOfCharacters(length) : 12)
  }

  /** The word given as `name=word` after the token. */
  word(name: string): string | undefined {
    return new RegExp(`\\b${name}=([\\w.-]+)`).exec(this.#text)?.[1]
  }

  /** The number given as `name=123` after the token, or `fallback`. */
  count(name: string, fallback: number): number {
    const word = this.word(name)
    return word !== undefined && /^\d+$/.test(word) ? Number(word) : fallback
  }

  /** The text after the token in the message. */
  get text(): string {
    return this.#text
  }

  /** The parsed body, for the scripts that need it; empty when it is not a JSON object. */
  get json(): JsonRecord {
    this.#json ??= parseRecord(this.#body)
    return this.#json
  }

  /**
   * The texts of the tool results with which the conversation ends, in order; empty when it ends otherwise. Coding agents
   * put instructions behind them.
   */
  get toolResults(): string[] {
    const instructing = new Set<unknown>(['system', 'developer'])
    const messages = toList(this.json.messages)
      .map(toRecord)
      .filter((message) => !instructing.has(message.role))
    if (this.dialect === 'chat') {
      const first = messages.findLastIndex((message) => message.role !== 'tool') + 1
      return messages.slice(first).map((message) => contentText(message.content))
    }
    return toList(messages.at(-1)?.content)
      .map(toRecord)
      .filter((block) => block.type === 'tool_result')
      .map((block) => contentText(block.content))
  }

  /** The functions on offer, in order. */
  get tools(): { name: string; schema: JsonRecord }[] {
    return toList(this.json.tools).flatMap((tool) => {
      const record = toRecord(tool)
      const made = this.dialect === 'messages' ? record : toRecord(record.function)
      const name = toText(made.name)
      const schema = this.dialect === 'messages' ? made.input_schema : (made.parameters ?? {})
      return name === '' || schema === undefined ? [] : [{ name, schema: toRecord(schema) }]
    })
  }

  /** Whether a member is `true`. Inside a JSON string the quotes would be escaped, so this finds members only. */
  #isTrue(name: string): boolean {
    const quoted = `"${name}"`
    for (let start = this.#body.indexOf(quoted); start >= 0; start = this.#body.indexOf(quoted, start + 1)) {
      const window = this.#body.toString('latin1', start + quoted.length, start + quoted.length + 20)
      if (/^\s*:\s*true/.test(window)) return true
    }
    return false
  }
}

function parseRecord(body: Buffer): JsonRecord {
  try {
    return toRecord(JSON.parse(body.toString('utf8')))
  } catch {
    return {}
  }
}
