export const TEXT = {
  title: 'Sign in to Headgate',
  passkey: 'Sign in with a passkey',
  company: 'Sign in with your company account',
  organization: 'Organization',
  organizationHint: 'acme',
  failures: {
    sign_in_expired: 'The sign-in took too long, or began in another browser. Begin again.',
    setup_link_unusable: 'This setup link has expired or was used. Ask an administrator for another one.',
    sso_declined: 'Your company’s sign-in did not let you in.',
    sso_no_member: 'This account belongs to no member of the organization who may sign in.',
    sso_refused: 'The answer of your company’s sign-in was not accepted.',
    sso_unavailable: 'There is no sign-in with a company account for this organization.',
    sso_unreachable: 'Your company’s sign-in does not answer. Try again later, or use a passkey.',
    sso_unverified: 'Your company has not verified the address of this account.',
  } as Readonly<Record<string, string>>,
  failed: 'The sign-in failed.',
  setup:
    'Without a passkey, ask an administrator of your organization for a setup link. It signs you in and registers one.',
  usedStart: 'This start link was used already.',
  usedStartHelp: 'Stop npm run dev and start it again: it prints a fresh link.',
  declined:
    'No passkey was used. The browser was closed, it took too long, or this device has none for this gateway.',
  unsupported: 'This browser cannot use passkeys here. They need HTTPS, or the address localhost.',
} as const
