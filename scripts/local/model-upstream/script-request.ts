import { tokensOfCharacters } from './json-value.ts'
import type { Dialect } from './reply.ts'

/** What a built-in script can know about its request, found in the raw bytes without parsing them. */
export class ScriptRequest {
  readonly dialect: Dialect
  /** The credential the request presented, empty when it had none. */
  readonly credential: string
  readonly #body: Buffer
  readonly #text: string

  constructor(body: Buffer, text: string, dialect: Dialect, credential: string) {
    this.#body = body
    this.#text = text
    this.dialect = dialect
    this.credential = credential
  }

  /** Whether a stream was asked for. */
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
