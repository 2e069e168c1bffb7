import { documentTokens } from '../../gateway/token-count/document-tokens.ts'
import { imageSize } from '../../gateway/token-count/image-size.ts'
import { imageRuleOf } from '../../gateway/token-count/image-tokens.ts'
import { familyOf, tokensOf } from '../../gateway/token-count/model-families.ts'
import { TextCounter } from '../../gateway/token-count/text-counter.ts'
import { scanJson } from '../../lib/json-scan.ts'
import type { JsonPath } from '../../lib/json-visitor.ts'

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
 * Creates an estimate for one model, which rather overestimates. Texts are counted by the tokenizer of its family. Images
 * and files of unknown size count as their maximum.
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
        if (UNCOUNTED.has(name)) return
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
    return tokensOf(family, texts.totals) - before + more
  }
}

/** @returns base64 content of a string; null for other strings. */
function base64In(path: JsonPath, name: string, contents: Uint8Array): Uint8Array | null {
  if (name !== 'image_url' && name !== 'file_data' && name !== 'data') return null
  const head = BASE64_HEAD.exec(String.fromCharCode(...contents.subarray(0, HEAD_BYTES)))
  if (head) return contents.subarray(head[0].length)
  return name !== 'image_url' && path.length > 1 ? contents : null
}
