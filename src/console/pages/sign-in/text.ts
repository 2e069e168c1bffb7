export const TEXT = {
  title: 'Sign in to Headgate',
  passkey: 'Sign in with a passkey',
  setup:
    'Without a passkey, ask an administrator of your organization for a setup link. It signs you in and registers one.',
  usedStart: 'This start link was used already.',
  usedStartHelp: 'Stop npm run dev and start it again: it prints a fresh link.',
  declined:
    'No passkey was used. The browser was closed, it took too long, or this device has none for this gateway.',
  unsupported: 'This browser cannot use passkeys here. They need HTTPS, or the address localhost.',
} as const
