import { RefusedError } from './refused-error.ts'

/** Tokens of an expression of `Upstash-Retry-Delay`. https://upstash.com/docs/qstash/features/retry */
const TOKEN = /\s*(?:(\d+(?:\.\d+)?)|([a-z]+)|([-+*/(),]))/y
const LONGEST_EXPRESSION = 256

const FUNCTIONS: Record<string, (...values: number[]) => number> = {
  pow: Math.pow,
  sqrt: Math.sqrt,
  abs: Math.abs,
  exp: Math.exp,
  floor: Math.floor,
  ceil: Math.ceil,
  round: Math.round,
  min: Math.min,
  max: Math.max,
}

/**
 * The delay that an expression such as `pow(2, retried) * 1000` gives.
 *
 * @param retried how often the message was delivered again, 0 before its first retry
 * @returns milliseconds
 * @throws RefusedError (400) for an expression that QStash would refuse
 */
export function retryDelay(expression: string, retried: number): number {
  const delay = new Reader(tokensOf(expression), retried).read()
  if (!(delay >= 0)) throw invalid()
  return delay
}

const invalid = () => new RefusedError(400, 'invalid retry delay expression')

function tokensOf(expression: string): string[] {
  if (expression.length > LONGEST_EXPRESSION) throw invalid()
  const tokens: string[] = []
  const text = expression.trimEnd()
  for (TOKEN.lastIndex = 0; TOKEN.lastIndex < text.length; ) {
    const [found] = TOKEN.exec(text) ?? []
    if (found === undefined) throw invalid()
    tokens.push(found.trim())
  }
  return tokens
}

/** Reads a sum of products of numbers, `retried`, calls and parentheses. */
class Reader {
  readonly #tokens: string[]
  readonly #retried: number

  constructor(tokens: string[], retried: number) {
    this.#tokens = tokens
    this.#retried = retried
  }

  read(): number {
    const value = this.#sum()
    if (this.#tokens.length > 0) throw invalid()
    return value
  }

  #sum(): number {
    let value = this.#product()
    for (;;) {
      if (this.#take('+')) value += this.#product()
      else if (this.#take('-')) value -= this.#product()
      else return value
    }
  }

  #product(): number {
    let value = this.#operand()
    for (;;) {
      if (this.#take('*')) value *= this.#operand()
      else if (this.#take('/')) value /= this.#operand()
      else return value
    }
  }

  #operand(): number {
    if (this.#take('-')) return -this.#operand()
    if (this.#take('(')) return this.#values()[0] ?? Number.NaN
    const token = this.#tokens.shift() ?? ''
    if (token === 'retried') return this.#retried
    const call = Object.hasOwn(FUNCTIONS, token) ? FUNCTIONS[token] : undefined
    if (call && this.#take('(')) return call(...this.#values())
    if (!/^\d/.test(token)) throw invalid()
    return Number(token)
  }

  /** Values up to the closing parenthesis. */
  #values(): number[] {
    const values = [this.#sum()]
    while (this.#take(',')) values.push(this.#sum())
    if (!this.#take(')')) throw invalid()
    return values
  }

  #take(token: string): boolean {
    if (this.#tokens[0] !== token) return false
    this.#tokens.shift()
    return true
  }
}
