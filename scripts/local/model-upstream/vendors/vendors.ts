import { answerAzure } from './azure/azure.ts'
import { answerBedrock } from './bedrock/bedrock.ts'
import { answerFoundry } from './foundry/foundry.ts'
import { answerGemini } from './gemini/gemini.ts'
import type { VendorRequest } from './vendor-request.ts'
import { answerVertex } from './vertex/vertex.ts'

/** The scripted vendors, each below a base URL of its own: `<server>/vendors/<name>`. */
const VENDORS: Record<string, (request: VendorRequest) => Promise<void>> = {
  azure: answerAzure,
  bedrock: answerBedrock,
  foundry: answerFoundry,
  gemini: answerGemini,
  vertex: answerVertex,
}

/** @returns the script of a path `/vendors/raw/<script>/…`; null for other paths. */
export const rawScriptOf = (path: string): string | null =>
  /^\/vendors\/raw\/([\w.-]+)\//.exec(path)?.[1] ?? null

/** @returns the vendor of a path, and the path below its base URL; null for other paths. */
export function vendorOf(
  path: string,
): { answer: (request: VendorRequest) => Promise<void>; below: string } | null {
  const [, name = '', below = ''] = /^\/vendors\/([a-z-]+)(\/.*)$/.exec(path) ?? []
  const answer = Object.hasOwn(VENDORS, name) ? VENDORS[name] : undefined
  return answer ? { answer, below } : null
}
