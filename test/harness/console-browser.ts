import { randomInt } from 'node:crypto'
import { Authenticator } from './authenticator.ts'
import { type Answer, jsonOf, send } from './send.ts'
import type { GatewayAddress } from './start-gateway.ts'
import { administrator } from './tenant.ts'

type Json = Record<string, unknown>
type Options = Parameters<Authenticator['register']>[0]

export const SESSION_COOKIE = '__Host-hg_session'
export const CEREMONY_COOKIE = '__Host-hg_ceremony'

/** A browser at the pages of a gateway, with cookies and an authenticator. */
export class ConsoleBrowser {
  readonly cookies = new Map<string, string>()
  readonly authenticator: Authenticator
  readonly #address: GatewayAddress
  // Attempts to sign in are limited by address.
  readonly #ip = `198.19.${randomInt(256)}.${randomInt(256)}`

  constructor(address: GatewayAddress, authenticator = new Authenticator({ origin: address.baseUrl })) {
    this.#address = address
    this.authenticator = authenticator
  }

  /** Headers as a page of the gateway sends them. */
  headers(): Record<string, string> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    return {
      'content-type': 'application/json',
      'sec-fetch-site': 'same-origin',
      'cf-connecting-ip': this.#ip,
      ...(cookie && { cookie }),
    }
  }

  /** @param path below `/api`. @param headers instead of those of a page. */
  async call(method: string, path: string, body?: unknown, headers = this.headers()): Promise<Answer> {
    const answer = await send(`${this.#address.baseUrl}/api${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    for (const line of answer.headers['set-cookie'] ?? []) this.#store(line)
    return answer
  }

  /** @throws unless the answer is a success. @returns its body. */
  async ask<Body = Json>(method: string, path: string, body?: unknown): Promise<Body> {
    const answer = await this.call(method, path, body)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return jsonOf(answer) as Body
  }

  /** Uses a setup link. @returns the answer of its last step. */
  async setUp(token: string): Promise<Answer> {
    const { options } = await this.ask<{ options: Options }>('POST', '/setup/passkey/begin', { token })
    return this.finishSetup(token, options)
  }

  finishSetup(token: string, options: Options): Promise<Answer> {
    const credential = this.authenticator.register(options)
    return this.call('POST', '/setup/passkey/finish', { token, name: 'Laptop', credential })
  }

  /** Signs in with the newest passkey, or another. @returns the answer of the last step. */
  async signIn(credential = this.authenticator.credentials.at(-1)): Promise<Answer> {
    const { options } = await this.ask<{ options: Options }>('POST', '/sign-in/passkey/begin')
    return this.call('POST', '/sign-in/passkey/finish', {
      credential: this.authenticator.answer(options, credential),
    })
  }

  #store(line: string): void {
    const [pair = ''] = line.split(';')
    const [name = '', value = ''] = pair.split('=')
    if (value === '') this.cookies.delete(name)
    else this.cookies.set(name, decodeURIComponent(value))
  }
}

/** A setup link of a member, made with the administration token. */
export async function setupLink(address: GatewayAddress, base: string, userId: string): Promise<string> {
  const { token } = await administrator(address).ask<{ token: string }>(
    'POST',
    `${base}/users/${userId}/setup-link`,
  )
  return token
}

/** A browser that is signed in as a member. */
export async function signedInBrowser(
  address: GatewayAddress,
  base: string,
  userId: string,
  authenticator?: Authenticator,
): Promise<ConsoleBrowser> {
  const browser = new ConsoleBrowser(address, authenticator)
  const answer = await browser.setUp(await setupLink(address, base, userId))
  if (answer.status !== 200) throw new Error(`setting up: ${answer.status} ${answer.text}`)
  return browser
}
