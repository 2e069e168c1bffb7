/** A token of one use after `#` in the address: of a local system's start, or of a setup link. */
interface AddressToken {
  kind: 'start' | 'token'
  value: string
}

let taken: AddressToken | null = null

/** Keeps the token of the address in memory and removes it from there, so that neither history nor a copied address holds it. */
export function takeAddressToken(): void {
  const [, kind, value] = /^#(start|token)=([^&]+)$/.exec(location.hash) ?? []
  if (value === undefined) return
  taken = { kind: kind === 'start' ? 'start' : 'token', value }
  history.replaceState(history.state, '', location.pathname + location.search)
}

/** The token of the address as it was when the console was loaded. */
export const addressToken = (kind: AddressToken['kind']): string | null =>
  taken?.kind === kind ? taken.value : null

/** Forgets the token, which was used. */
export function dropAddressToken(): void {
  taken = null
}
