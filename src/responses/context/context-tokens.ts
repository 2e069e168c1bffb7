import { documentTokens } from '../../gateway/token-count/document-tokens.ts'
import { imageSize } from '../../gateway/token-count/image-size.ts'
import { imageRuleOf } from '../../gateway/token-count/image-tokens.ts'
import { familyOf } from '../../gateway/token-count/model-families.ts'
import { TextTokens } from '../../gateway/token-count/text-tokens.ts'
import { scanJsonInSlices } from '../../lib/json-scan.ts'
import type { JsonPath } from '../../lib/json-visitor.ts'
import { drained, runSlices, type Slices } from '../../lib/slices.ts'
import type { ContextItem } from '../model/types.ts'

/** Estimates the tokens of a JSON text for a model: of an item, or of settings. */
export type TokenEstimate = (json: Uint8Array) => number

/** Members that models do not get. */
const UNCOUNTED = new Set(['id', 'type', 'status', 'call_id', 'detail'])
/** Base64 of UTF-8 text, of which a token is at least three bytes. */
const SEALED_BYTES_PER_TOKEN = 4
const HEAD_BYTES = 200
const BASE64_HEAD = /^data:[^,]*;base64,/i
/** Stands for a file at a URL: it counts as the most pages that vendors accept. */
const UNSEEN_FILE = new Uint8Array(1024 * 1024)

/**
 * Creates an estimate for one model, which rather overestimates. Texts count by the kinds of their bytes. Images and files
 * of unknown size count as their maximum.
 * @param upstreamModel the provider's name of the model. @param items are estimated at once, in slices: a context may have
 *   56 MB, and its plans ask for an item several times.
 */
export async function tokenEstimate(
  upstreamModel: string,
  items: ReadonlyArray<Pick<ContextItem, 'bytes'>>,
): Promise<TokenEstimate> {
  const known = new Map<Uint8Array, number>()
  for (const { bytes } of items) known.set(bytes, await runSlices(estimatedTokens(bytes, upstreamModel)))
  return (json) => known.get(json) ?? drained(estimatedTokens(json, upstreamModel))
}

function* estimatedTokens(json: Uint8Array, upstreamModel: string): Slices<number> {
  const family = familyOf(upstreamModel)
  const image = imageRuleOf(upstreamModel)
  const texts = new TextTokens(json)
  const files: Uint8Array[] = []
  let more = family.message
  yield* scanJsonInSlices(json, {
    valueDepth: -1,
    string(path, start, end, name) {
      if (UNCOUNTED.has(name)) return
      const contents = json.subarray(start, end)
      const encoded = base64In(path, name, contents)
      if (name === 'encrypted_content') more += Math.ceil(contents.length / SEALED_BYTES_PER_TOKEN)
      else if (name === 'image_url') more += image(encoded ? imageSize(encoded) : null)
      else if (name === 'file_id' || name === 'file_url') files.push(UNSEEN_FILE)
      else if (encoded) files.push(encoded)
      else texts.add(start, end)
    },
  })
  for (const file of files) more += yield* documentTokens(file, image)
  return (yield* texts.of(family)) + more
}

/** @returns base64 content of a string; null for other strings. */
function base64In(path: JsonPath, name: string, contents: Uint8Array): Uint8Array | null {
  if (name !== 'image_url' && name !== 'file_data' && name !== 'data') return null
  const head = BASE64_HEAD.exec(String.fromCharCode(...contents.subarray(0, HEAD_BYTES)))
  if (head) return contents.subarray(head[0].length)
  return name !== 'image_url' && path.length > 1 ? contents : null
}
