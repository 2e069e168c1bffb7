import { readAll } from '../../lib/bytes/read-bytes.ts'

/** More of an error is not kept: it is told only if no other candidate answers. */
const LONGEST_BYTES = 1024 * 1024

/** An upstream's error answer that is told only if nobody gives a better one; read while others are tried. */
export class DeferredError {
  readonly #response: Response
  readonly #body: Promise<Uint8Array | null>

  constructor(response: Response) {
    this.#response = response
    this.#body = response.body
      ? readAll(response.body, LONGEST_BYTES).catch(() => null)
      : Promise.resolve(new Uint8Array())
  }

  /** @returns the answer, or null if its body broke off. */
  async response(): Promise<Response | null> {
    const body = await this.#body
    const { status, headers } = this.#response
    return body && new Response(body as Uint8Array<ArrayBuffer>, { status, headers })
  }
}
