import { type Answer, send } from './send.ts'

/** A browser as far as connecting an account needs one: cookies by path, and the origin of forms. */
export class Browser {
  readonly #cookies = new Map<string, string>()

  /** Opens a page. Redirects are returned. */
  async get(url: string): Promise<Answer> {
    return this.#keep(await send(url, { headers: this.#headers() }))
  }

  /** Sends the form of a page. @param origin of the page. */
  async submit(url: string, origin = new URL(url).origin): Promise<Answer> {
    const headers = { ...this.#headers(), origin, 'content-type': 'application/x-www-form-urlencoded' }
    return this.#keep(await send(url, { method: 'POST', headers }))
  }

  get cookies(): ReadonlyMap<string, string> {
    return this.#cookies
  }

  #headers(): Record<string, string> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    return cookie === '' ? {} : { cookie }
  }

  #keep(answer: Answer): Answer {
    for (const line of answer.headers['set-cookie'] ?? []) {
      const [pair = ''] = line.split(';')
      const end = pair.indexOf('=')
      this.#cookies.set(pair.slice(0, end), pair.slice(end + 1))
    }
    return answer
  }
}

export const locationOf = (answer: Answer): string => {
  const { location } = answer.headers
  if (location === undefined) throw new Error(`no redirect: ${answer.status} ${answer.text.slice(0, 300)}`)
  return location
}
