import type { DeployClock } from './deploy-clock.ts'
import { DeployError } from './deploy-error.ts'

export interface ApiOptions {
  /** Of messages: `Cloudflare`. */
  name: string
  /** Without a slash at the end. */
  baseUrl: string
  /** Value of the header `authorization`. */
  authorization: string
  fetch: typeof fetch
  clock: DeployClock
  /** The permission that a path needs, for the message of a 403. */
  permissionOf: (method: string, path: string) => string
}

export interface ApiAnswer {
  status: number
  /** Parsed JSON; undefined if the answer is none. */
  body: unknown
}

/** Requests that are refused with 429, answered with 5xx or cut are repeated at most so often. */
const MOST_ATTEMPTS = 5
/** A longer wait is not honoured: the deployment ends, and a later run continues. */
const LONGEST_WAIT_MS = 60_000
const REQUEST_LIMIT_MS = 30_000

/** A JSON API with a bearer token: bounded waits for 429, and messages that name what is missing and no credential. */
export class HttpApi {
  readonly #options: ApiOptions

  constructor(options: ApiOptions) {
    this.#options = options
  }

  /**
   * Sends a request. A cut POST is not repeated, because it may have had its effect; the next run reads what exists.
   *
   * @returns the answer, with any status but 401, 403, 429 and 5xx
   * @throws DeployError naming the missing permission, or what failed
   */
  async send(method: 'GET' | 'POST', path: string, body?: unknown): Promise<ApiAnswer> {
    const { name, clock } = this.#options
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(method, path, body)
      if ('answer' in outcome) return outcome.answer
      const mayRepeat = method === 'GET' || outcome.status === 429
      if (!mayRepeat || attempt === MOST_ATTEMPTS || outcome.waitMs > LONGEST_WAIT_MS) {
        throw new DeployError(
          `${name} ${outcome.problem} (${method} ${plainPath(path)}); run again to continue`,
        )
      }
      await clock.sleep(outcome.waitMs === 0 ? 1_000 * attempt : outcome.waitMs)
    }
  }

  async #attempt(
    method: string,
    path: string,
    body: unknown,
  ): Promise<{ answer: ApiAnswer } | { problem: string; status: number; waitMs: number }> {
    const { name, baseUrl, authorization, permissionOf } = this.#options
    let response: Response
    let text: string
    try {
      response = await this.#options.fetch(`${baseUrl}${path}`, {
        method,
        headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(REQUEST_LIMIT_MS),
      })
      text = await response.text()
    } catch {
      return { problem: 'does not answer', status: 0, waitMs: 0 }
    }
    const { status } = response
    if (status === 401) throw new DeployError(`${name} does not accept the token`)
    if (status === 403) {
      const permission = permissionOf(method, path)
      throw new DeployError(
        `the token of ${name} lacks the permission "${permission}" (${method} ${plainPath(path)})`,
      )
    }
    if (status === 429) {
      const seconds = Number(response.headers.get('retry-after') ?? 0)
      return {
        problem: 'limits the rate of requests',
        status,
        waitMs: Number.isFinite(seconds) ? seconds * 1000 : 0,
      }
    }
    if (status >= 500) return { problem: `answered ${status}`, status, waitMs: 0 }
    return { answer: { status, body: parsedOf(text) } }
  }
}

/** Without the query, which may name a role or a project. */
const plainPath = (path: string): string => path.split('?', 1)[0] ?? path

function parsedOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
