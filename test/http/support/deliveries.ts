import { signDelivery } from '../../../scripts/node/qstash/signature.ts'
import { gateway } from '../../harness/gateway.ts'
import { type Answer, send } from '../../harness/send.ts'

interface Delivery {
  key?: string
  /** The URL that is signed. */
  url?: string
  /** The body that is signed. */
  signed?: string
  headers?: Record<string, string>
}

/** Delivers as QStash does. */
export function deliver(path: string, body: unknown, options: Delivery = {}): Promise<Answer> {
  const { baseUrl, variables } = gateway()
  const text = JSON.stringify(body)
  const { key = variables.QSTASH_CURRENT_SIGNING_KEY ?? '', url = baseUrl + path, signed = text } = options
  const headers = {
    'content-type': 'application/json',
    'upstash-signature': signDelivery(key, url, Buffer.from(signed)),
    ...options.headers,
  }
  return send(baseUrl + path, { method: 'POST', headers, body: text })
}
