import { call } from './client.ts'

/** Signs in with a passkey of this device. @throws Refusal; DOMException where the browser or the person declines. */
export async function signInWithPasskey(): Promise<void> {
  const { options } = await call('sign-in.begin', {})
  const credential = await navigator.credentials.get({
    publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options),
  })
  await call('sign-in.finish', { body: { credential: credentialJson(credential) } })
}

/** Registers the passkey of a setup link, which signs in. @throws Refusal; DOMException */
export async function createPasskey(token: string, name: string): Promise<void> {
  const { options } = await call('setup.begin', { body: { token } })
  const credential = await navigator.credentials.create({
    publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(
      options as unknown as PublicKeyCredentialCreationOptionsJSON,
    ),
  })
  await call('setup.finish', { body: { token, name, credential: credentialJson(credential) } })
}

function credentialJson(credential: Credential | null) {
  if (credential === null) throw new DOMException('No passkey was chosen.', 'NotAllowedError')
  return (credential as PublicKeyCredential).toJSON() as unknown as {
    id: string
    response: Record<string, unknown>
  }
}
