/**
 * Names those who can check, and open, the signatures of some thinking: thinking goes back to no others. Claude's hold on
 * every platform that serves it (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking); of all others
 * nothing is known, so that theirs hold for models of one family at one provider.
 * @param protocol that the model is asked in. @param upstreamModel its id at the provider, with whatever stands before
 * it there. @param providerId for the families that are not known.
 */
export function signatureOrigin(protocol: string, upstreamModel: string, providerId: string): string {
  const name = upstreamModel.toLowerCase()
  if (/(^|[^a-z])claude([^a-z]|$)/.test(name)) return `${protocol}:claude`
  const family = /[a-z]+/.exec(name.slice(name.lastIndexOf('/') + 1))?.[0] ?? 'unnamed'
  return `${protocol}:${family}@${providerId}`
}
