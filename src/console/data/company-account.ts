import { call } from './client.ts'

const NAME = 'headgate.organization'

/** The organization whose company accounts were used last in this browser, by its slug. */
export const lastOrganization = (): string => localStorage.getItem(NAME) ?? ''

/** Leads to the identity provider of an organization, which leads back to a page of the console. @throws Refusal */
export async function signInWithCompany(organization: string, to: string): Promise<void> {
  const { url } = await call('sign-in.oidc-begin', { body: { organization, to } })
  localStorage.setItem(NAME, organization)
  location.assign(url)
}

/** Leads a new user to the identity provider, whose account is linked by the setup link. @throws Refusal */
export async function setUpWithCompany(token: string): Promise<void> {
  const { url } = await call('sign-in.oidc-begin', { body: { token } })
  location.assign(url)
}
