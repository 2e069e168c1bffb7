import { documentTokens } from '../../gateway/token-count/document-tokens.ts'
import { imageSize } from '../../gateway/token-count/image-size.ts'
import { imageRuleOf } from '../../gateway/token-count/image-tokens.ts'
import { familyOf, tokensOf } from '../../gateway/token-count/model-families.ts'
import { TextCounter } from '../../gateway/token-count/text-counter.ts'
import { type JsonPath, scanJson } from '../../lib/json-scan.ts'

/** Estimates how many tokens a JSON text comes to for a model: an item, or settings. */
export type TokenEstimate = (json: Uint8Array) => number

/** Strings that no model is told. */
const UNTOLD = new Set(['id', 'type', 'status', 'call_id', 'detail'])
/** Base64 of UTF-8 text: a token is at least three bytes of that. */
const SEALED_BYTES_PER_TOKEN = 4
const HEAD_BYTES = 200
const BASE64_HEAD = /^data:[^,]*;base64,/i
/** A file that is somewhere else: as many pages as vendors take. */
const UNSEEN_FILE = new Uint8Array(1024 * 1024)

/**
 * Makes an estimate for one model; it counts high. Texts are counted as the model's family does, images and files by
 * what they cost at most where their size cannot be read.
 *
 * @param upstreamModel the provider's name of the model.
 */
export function tokenEstimate(upstreamModel: string): TokenEstimate {
  const family = familyOf(upstreamModel)
  const image = imageRuleOf(upstreamModel)
  const texts = new TextCounter()
  return (json) => {
    const before = tokensOf(family, texts.totals)
    let more = Math.max(family.message, family.toolCall)
    scanJson(json, {
      valueDepth: -1,
      string(path, start, end, name) {
        if (UNTOLD.has(name)) return
        const contents = json.subarray(start, end)
        const encoded = base64In(path, name, contents)
        if (name === 'encrypted_content') more += Math.ceil(contents.length / SEALED_BYTES_PER_TOKEN)
        else if (name === 'image_url') more += image(encoded ? imageSize(encoded) : null)
        else if (name === 'file_id' || name === 'file_url') more += documentTokens(UNSEEN_FILE, image)
        else if (encoded) more += documentTokens(encoded, image)
        else {
          texts.pushJson(json, start, end)
          texts.end()
        }
      },
    })
    // Names, numbers and the like of settings are told as well; of items they are few.
    return tokensOf(family, texts.totals) - before + more
  }
}

/** @returns the encoded content that a string is, if it is any. */
function base64In(path: JsonPath, name: string, contents: Uint8Array): Uint8Array | null {
  if (name !== 'image_url' && name !== 'file_data' && name !== 'data') return null
  const head = BASE64_HEAD.exec(String.fromCharCode(...contents.subarray(0, HEAD_BYTES)))
  if (head) return contents.subarray(head[0].length)
  return name !== 'image_url' && path.length > 1 ? contents : null
}
