import { type Json, listOf, objectOf, textOf } from '../../../../../src/gateway/protocols/json.ts'

/** Names of functions (https://ai.google.dev/api/caching#FunctionDeclaration). */
const NAME = /^[a-zA-Z_][\w.:-]{0,63}$/

/** The rules of the vendor that a body breaks, in words. */
export function brokenGenerateContentRules(body: Json, model = 'gemini-3-pro'): string[] {
  const broken: string[] = []
  const contents = listOf(body.contents)
  const roles = contents.map(({ role }) => textOf(role))
  if (roles.some((role, index) => role !== (index % 2 === 0 ? 'user' : 'model')))
    broken.push('roles do not alternate')
  if (roles.at(-1) !== 'user') broken.push('the last content is not the user’s')
  for (const [index, content] of contents.entries()) {
    const parts = listOf(content.parts)
    if (parts.length === 0) broken.push(`content ${index} is empty`)
    for (const part of parts) broken.push(...brokenPart(part))
    const calls = parts.filter((part) => part.functionCall)
    broken.push(...brokenResults(calls, listOf(contents[index + 1]?.parts)))
    const unsigned = calls[0] && calls[0].thoughtSignature === undefined
    if (unsigned && model.startsWith('gemini-3')) broken.push('Function call is missing a thought_signature')
    if (calls.slice(1).some((call) => call.thoughtSignature)) broken.push('a later call has a signature')
  }
  const declared = listOf(listOf(body.tools)[0]?.functionDeclarations).map(({ name }) => textOf(name))
  for (const name of declared) if (!NAME.test(name)) broken.push(`the name ${name}`)
  if (listOf(objectOf(body.systemInstruction).parts).some(({ text }) => text === ''))
    broken.push('empty instruction')
  return broken
}

function brokenPart(part: Json): string[] {
  if (part.text === '' && !part.thoughtSignature) return ['an empty part']
  const call = objectOf(part.functionCall)
  if (part.functionCall && (!NAME.test(textOf(call.name)) || typeof call.args !== 'object')) return ['a call']
  const result = objectOf(part.functionResponse)
  const isObject = typeof result.response === 'object' && !Array.isArray(result.response)
  return part.functionResponse && !isObject ? ['a result that is no object'] : []
}

/** Results stand first in the next content: as many as calls, and in their order. */
function brokenResults(calls: readonly Json[], next: readonly Json[]): string[] {
  const called = calls.map(({ functionCall }) => objectOf(functionCall))
  const results = next.filter((part) => part.functionResponse)
  const isFirst = results.every((part, index) => part === next[index])
  const isSame = called.every(({ id, name }, index) => {
    const result = objectOf(results[index]?.functionResponse)
    return result.id === id && result.name === name
  })
  return calls.length > 0 && !(isFirst && isSame && results.length === calls.length)
    ? ['results do not answer the calls']
    : []
}
