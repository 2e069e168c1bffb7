/**
 * The origin of signed thinking: it is sent back only to models of the same origin. Claude's signatures hold on every
 * platform that serves it (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking). Other vendors
 * publish nothing, so their origin is one family at one provider. Gemini refuses the signatures of its other models too, and
 * names of Bedrock begin with a region.
 * @param protocol of the upstream. @param upstreamModel the model's id at the provider, with or without a prefix.
 */
export function signatureOrigin(protocol: string, upstreamModel: string, providerId: string): string {
  const name = upstreamModel.toLowerCase()
  if (/(^|[^a-z])claude([^a-z]|$)/.test(name)) return `${protocol}:claude`
  if (protocol === 'generate_content' || protocol === 'converse') return `${protocol}:${name}@${providerId}`
  const family = /[a-z]+/.exec(name.slice(name.lastIndexOf('/') + 1))?.[0] ?? 'unnamed'
  return `${protocol}:${family}@${providerId}`
}
