import type { TextEngine } from '../../dlp/inspection.ts'
import { jsonContents } from '../../lib/json-text.ts'
import { FORWARDED_NAMES } from '../providers/forwarded-headers.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/**
 * The headers of a call, with the policies applied to those that a provider receives. They are not counted: the counts of
 * inspected bytes are those of the body.
 * @returns the same headers if nothing changes. @throws ApiError `dlp_blocked` for a finding that blocks the call.
 */
export function inspectedHeaders(headers: Headers, engine: TextEngine): Headers {
  if (engine.passive) return headers
  let inspected = headers
  for (const name of FORWARDED_NAMES) {
    const value = headers.get(name)
    if (!value) continue
    const found = engine.inspect({ path: [name], partial: false, name }, encoder.encode(jsonContents(value)))
    if (!found) continue
    if (inspected === headers) inspected = new Headers(headers)
    const contents = found instanceof Uint8Array ? found : found.contents
    inspected.set(name, JSON.parse(`"${decoder.decode(contents)}"`) as string)
  }
  return inspected
}
