/** Thrown for an expression that cannot be read; the message says where. */
export class ExpressionError extends Error {}

const FUNCTIONS: Record<string, { readonly arity: number; readonly apply: (...values: number[]) => number }> =
  {
    pow: { arity: 2, apply: Math.pow },
    sqrt: { arity: 1, apply: Math.sqrt },
    abs: { arity: 1, apply: Math.abs },
    exp: { arity: 1, apply: Math.exp },
    floor: { arity: 1, apply: Math.floor },
    ceil: { arity: 1, apply: Math.ceil },
    round: { arity: 1, apply: Math.round },
    min: { arity: 2, apply: Math.min },
    max: { arity: 2, apply: Math.max },
  }

const TOKEN = /\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z_]\w*)|([-+*/%(),]))/y

/** Longest expression that is read, in characters; also bounds how deep parentheses can nest. */
const MAX_LENGTH = 500

/**
 * Computes an arithmetic expression: numbers, `+ - * / %`, parentheses, variables, and the functions pow, sqrt, abs,
 * exp, floor, ceil, round, min and max. Nothing of it is ever run as code.
 * https://upstash.com/docs/qstash/features/retry
 *
 * @param source for example `max(1000, pow(2, retried) * 100)`
 * @param variables what the names in the expression stand for
 * @returns the value, which may be infinite or NaN
 * @throws ExpressionError if it is malformed or names something unknown
 */
export function evaluateExpression(source: string, variables: Record<string, number>): number {
  const parser = new Parser(tokenize(source), variables)
  const value = parser.sum()
  parser.end()
  return value
}

function tokenize(source: string): string[] {
  if (source.length > MAX_LENGTH)
    throw new ExpressionError(`expression is longer than ${MAX_LENGTH} characters`)
  const tokens: string[] = []
  const text = source.trimEnd()
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.length) {
    const start = TOKEN.lastIndex
    const match = TOKEN.exec(text)
    if (match === null) throw new ExpressionError(`unexpected character at position ${start}`)
    tokens.push(match[1] ?? match[2] ?? match[3] ?? '')
  }
  return tokens
}

/** Recursive descent: a sum of products of factors. */
class Parser {
  readonly #tokens: string[]
  readonly #variables: Record<string, number>
  #position = 0

  constructor(tokens: string[], variables: Record<string, number>) {
    this.#tokens = tokens
    this.#variables = variables
  }

  sum(): number {
    let value = this.#product()
    for (;;) {
      if (this.#take('+')) value += this.#product()
      else if (this.#take('-')) value -= this.#product()
      else return value
    }
  }

  end(): void {
    const rest = this.#tokens[this.#position]
    if (rest !== undefined) throw new ExpressionError(`unexpected "${rest}"`)
  }

  #product(): number {
    let value = this.#factor()
    for (;;) {
      if (this.#take('*')) value *= this.#factor()
      else if (this.#take('/')) value /= this.#factor()
      else if (this.#take('%')) value %= this.#factor()
      else return value
    }
  }

  #factor(): number {
    if (this.#take('-')) return -this.#factor()
    if (this.#take('+')) return this.#factor()
    if (this.#take('(')) {
      const value = this.sum()
      this.#expect(')')
      return value
    }
    const token = this.#tokens[this.#position++]
    if (token === undefined) throw new ExpressionError('unexpected end of expression')
    if (/^[\d.]/.test(token)) return Number(token)
    if (/^\w/.test(token)) return this.#named(token)
    throw new ExpressionError(`unexpected "${token}"`)
  }

  #named(name: string): number {
    const known = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined
    if (known !== undefined) return known.apply(...this.#parameters(name, known.arity))
    const value = Object.hasOwn(this.#variables, name) ? this.#variables[name] : undefined
    if (value === undefined) throw new ExpressionError(`unknown name "${name}"`)
    return value
  }

  #parameters(name: string, arity: number): number[] {
    this.#expect('(')
    const values = [this.sum()]
    while (this.#take(',')) values.push(this.sum())
    this.#expect(')')
    if (values.length !== arity)
      throw new ExpressionError(`${name} takes ${arity} value(s), not ${values.length}`)
    return values
  }

  #take(token: string): boolean {
    const taken = this.#tokens[this.#position] === token
    if (taken) this.#position++
    return taken
  }

  #expect(token: string): void {
    if (!this.#take(token)) throw new ExpressionError(`expected "${token}"`)
  }
}
