import { ApiError } from '../../lib/api-error.ts'
import { hmacSha256Hex } from '../../lib/crypto.ts'
import type { Action } from '../types.ts'

const SHOWN_UNITS = 4
const TOKEN_DIGITS = 12
const LONGEST_NAME = 40

/** Tokens as `tokenise` makes them. */
export const TOKEN = /\[\[[A-Z][A-Z0-9_]{0,39}_[0-9a-f]{12}\]\]/g
/** Neither a token nor a beginning of one has more units. */
export const LONGEST_TOKEN = 68
/** The end of a text that may become one. */
export const TOKEN_BEGINNING = /\[(?:\[(?:[A-Z][A-Z0-9_]{0,52}(?:[0-9a-f]{0,12}\]?)?)?)?$/

/**
 * Tokens in the place of a user's values. The same value of the same user has the same token, so that a model can
 * distinguish values and prompt caches keep warm; the value cannot be derived without the key. Values that the user sent
 * are held for the call that they occur in.
 */
export class TokenVault {
  readonly #key: Uint8Array
  readonly #owner: string
  readonly #values: Map<string, string>
  readonly #holds: boolean

  /** @param key of the deployment. @param owner organization and user: other owners have other tokens. */
  constructor(key: Uint8Array, owner: string, values = new Map<string, string>(), holds = true) {
    this.#key = key
    this.#owner = owner
    this.#values = values
    this.#holds = holds
  }

  /**
   * The vault for answers: it has the values that the user sent, and adds none. A value of an upstream that becomes a
   * token is not restored where the upstream repeats the token.
   */
  forAnswers(): TokenVault {
    return new TokenVault(this.#key, this.#owner, this.#values, false)
  }

  get isEmpty(): boolean {
    return this.#values.size === 0
  }

  tokenFor(detector: string, value: string): string {
    const digest = hmacSha256Hex(this.#key, `dlp-token\0${this.#owner}\0${detector}\0${value}`)
    const token = `[[${nameOf(detector)}_${digest.slice(0, TOKEN_DIGITS)}]]`
    if (this.#holds) this.#values.set(token, value)
    return token
  }

  /** @returns the value of a token of this call, or null. */
  valueOf(token: string): string | null {
    return this.#values.get(token) ?? null
  }
}

/** Detectors are slugs; custom ones may begin with a digit. */
function nameOf(detector: string): string {
  const name = detector
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .slice(0, LONGEST_NAME)
  return /^[A-Z]/.test(name) ? name : `X_${name}`.slice(0, LONGEST_NAME)
}

/**
 * The text that stands in the place of a finding.
 * @returns null where the finding passes as it is.
 * @throws ApiError `dlp_blocked`, naming the kind of what was found and never the value.
 */
export function replacementFor(
  { detector, action }: { detector: string; action: Action },
  found: string,
  vault: TokenVault,
): string | null {
  switch (action) {
    case 'allow':
    case 'warn':
      return null
    case 'mask':
      return masked(found)
    case 'redact':
      return `[REDACTED:${nameOf(detector)}]`
    case 'tokenise':
      return vault.tokenFor(detector, found)
    case 'block':
      throw dlpBlocked(detector)
  }
}

/** Letters and digits but the last four are hidden; of a short finding all of them. */
function masked(found: string): string {
  const total = found.replace(/[^\p{L}\p{N}]/gu, '').length
  let hidden = total > 2 * SHOWN_UNITS ? total - SHOWN_UNITS : total
  return found.replace(/[\p{L}\p{N}]/gu, (character) => {
    hidden -= character.length
    return hidden >= 0 ? '*' : character
  })
}

export const DLP_BLOCKED = 'dlp_blocked'

/** `shouldRetry` keeps official SDKs from repeating the call, which would end the same way. */
export const dlpBlocked = (what: string) =>
  new ApiError('invalid_request', `A data-loss prevention policy blocks this call: it found ${what}.`, {
    code: DLP_BLOCKED,
    shouldRetry: false,
  })
